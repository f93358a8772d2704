"""The least that a Python process can do for the same work: what our figures are divided by.

floors.py ipc DIR       answers every datagram on DIR/dynolog with an empty reply, nothing else
floors.py rpc PORT      answers every RPC frame with {"status":1}, one connection at a time, nothing else
Both end when their standard input is closed.
"""

import os
import select
import socket
import struct
import sys
import threading

REPLY = struct.pack("=Q32s", 0, b"req")
STATUS = struct.pack("=i", 12) + b'{"status":1}'


def ipc(directory: str) -> None:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    sock.bind(os.path.join(directory, "dynolog"))
    print("ready", flush=True)
    poller = select.epoll()
    poller.register(sock.fileno(), select.EPOLLIN)
    while True:
        poller.poll()
        _, _, _, address = sock.recvmsg(4096, 64)
        try:
            sock.sendto(REPLY, address)
        except OSError:
            continue


def rpc(port: int) -> None:
    listener = socket.create_server(("127.0.0.1", port), backlog=4096)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                connection.recv(65536)
                connection.sendall(STATUS)
            except OSError:
                continue


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    if sys.argv[1] == "ipc":
        ipc(sys.argv[2])
    else:
        rpc(int(sys.argv[2]))
