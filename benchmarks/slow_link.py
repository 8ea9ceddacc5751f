#!/usr/bin/env python3
"""A link between two network namespaces, with a rate and a delay: for kernels without netem.

    slow_link.py --namespaces sb0 sb1 --addresses 10.77.0.1/24 10.77.0.2/24 --rate 1e9 --delay 0.005

Makes a tun device `sbv0` in each namespace, says "ready", and carries packets between them until it is ended: each is
sent on after those before it at so many bits per second, and arrives so many seconds later. Needs root.
"""
import argparse
import collections
import fcntl
import os
import select
import struct
import subprocess
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MTU = 60000  # few packets for many bytes: each of them passes through this program
LEAST_WAIT = 5e-5  # seconds


def make_end(number, namespace, address):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    name = f"sbtun{number}"
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "link", "set", name, "netns", namespace], check=True)
    for words in (
        ["link", "set", name, "name", "sbv0"],
        ["addr", "add", address, "dev", "sbv0"],
        ["link", "set", "sbv0", "mtu", str(MTU), "txqueuelen", "10000", "up"],
    ):
        subprocess.run(["ip", "-n", namespace, *words], check=True)
    return device


def carry(src, dst, rate, delay):
    """Packets of one direction."""
    waiting = collections.deque()  # (when it arrives, packet)
    free = 0.0  # when the line has sent all it was given
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            try:
                os.write(dst, waiting[0][1])
            except BlockingIOError:
                break
            waiting.popleft()
        timeout = max(LEAST_WAIT, waiting[0][0] - time.monotonic()) if waiting else None
        if not select.select([src], [], [], timeout)[0]:
            continue
        packet = os.read(src, MTU + 100)
        free = max(free, time.monotonic()) + len(packet) * 8 / rate
        waiting.append((free + delay, packet))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--namespaces", nargs=2, required=True)
    parser.add_argument("--addresses", nargs=2, required=True)
    parser.add_argument("--rate", type=float, default=1e9, help="bits per second")
    parser.add_argument("--delay", type=float, default=0.005, help="seconds, one way")
    options = parser.parse_args()
    ends = [make_end(i, options.namespaces[i], options.addresses[i]) for i in (0, 1)]
    print("ready", flush=True)
    back = threading.Thread(target=carry, args=(ends[1], ends[0], options.rate, options.delay), daemon=True)
    back.start()
    carry(ends[0], ends[1], options.rate, options.delay)


if __name__ == "__main__":
    main()
