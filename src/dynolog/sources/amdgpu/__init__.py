"""GPUs of AMD, from the files of the amdgpu and amdkfd drivers."""
