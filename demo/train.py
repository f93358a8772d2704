"""A small training job to trace: one process, or several ranks with torchrun (gloo, CPU).

Nothing in it knows about dynolog: KINETO_USE_DAEMON=1 in its environment is all that is needed.
"""

import argparse
import os
import time

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="stop after this long")
    parser.add_argument("--step-ms", type=float, default=20.0, help="time of a step at least")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    model: nn.Module = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    stop = time.monotonic() + arguments.seconds
    # Every rank does the same number of steps, else the last all-reduce of the others would never end.
    running = torch.ones(1)
    step = 0
    while running.item() > 0:
        began = time.monotonic()
        inputs, labels = torch.randn(64, 256), torch.randint(0, 10, (64,))
        loss = loss_of(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 200 == 1:
            # One write a line: ranks share the terminal, and torchrun switches buffering off.
            line = f"rank {rank} of {ranks} pid {os.getpid()} step {step} loss {loss.item():.3f}\n"
            os.write(1, line.encode())
        running.fill_(1 if time.monotonic() < stop else 0)
        if ranks > 1:
            torch.distributed.all_reduce(running, torch.distributed.ReduceOp.MIN)
        time.sleep(max(arguments.step_ms / 1000 - (time.monotonic() - began), 0))
    if ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
