"""A GPU, or a MIG instance of one, that a process holds."""

import msgspec


class HeldGpu(msgspec.Struct, frozen=True, kw_only=True):
    """`device` is the number by which records and people name the whole device, `gpu_instance_id` is that of a MIG instance.

    `uuid` is the device's or the instance's, "" when nothing told it. `listed`: the driver lists the process there; otherwise only the
    device file is open in it, which a library that counts devices does as well.
    """

    device: str
    uuid: str = ""
    gpu_instance_id: int | None = None
    listed: bool = False

    @property
    def text(self) -> str:
        """As tables show it: `3`, and `3/gi1` for a MIG instance."""
        return self.device if self.gpu_instance_id is None else f"{self.device}/gi{self.gpu_instance_id}"

    def answers_to(self, name: str) -> bool:
        """Whether a person who says `name` (`3`, `3/gi1`, a uuid, or the first 8 or more characters of one) means it."""
        if name in (self.device, self.text):
            return True
        return len(name) >= _SHORTEST_UUID and self.uuid.lower().startswith(name.lower())


# `GPU-` and four digits: fewer are too easily two devices.
_SHORTEST_UUID = 8
