"""One side of the comparison as a process: ours or a peer's, in the protocol of peers/worker.py."""

import json
import os
import select
import subprocess
import tempfile
import time

ANSWER_SECONDS = 60  # for what should come soon


class Failed(Exception):
    """A worker could not do what it was told; the text is the reason."""


class Worker:
    """One process: ours or a peer's."""

    def __init__(self, command, environment):
        self.log = tempfile.TemporaryFile("w+")
        self.buffer = b""
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=environment
        )
        self.ready = None

    def await_ready(self):
        self.ready = self.ready or self.answer(ANSWER_SECONDS)
        return self.ready

    def answer(self, seconds):
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Failed(f"no answer within {seconds:.0f} s")
            read = os.read(self.process.stdout.fileno(), 65536)
            if not read:
                raise Failed(self.last_words())
            self.buffer += read
        line, self.buffer = self.buffer.split(b"\n", 1)
        try:
            values = json.loads(line)
        except ValueError:
            return self.answer(end - time.monotonic())  # something that a library prints
        if "error" in values:
            raise Failed(values["error"])
        return values

    def last_words(self):
        status = self.process.wait()
        self.log.seek(0)
        lines = [line.strip() for line in self.log.read().splitlines() if line.strip()]
        return f"ended with status {status}" + (f": {lines[-1][:200]}" if lines else "")

    def tell(self, command, seconds=ANSWER_SECONDS):
        try:
            self.process.stdin.write((command + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            raise Failed(self.last_words()) from None
        return self.answer(seconds)

    def stop(self):
        try:
            self.process.stdin.close()
            self.process.wait(2)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.log.close()
