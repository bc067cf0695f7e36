"""Processes that spend from one session, killed or left to end; each counts what it has been given."""

import os
import random
import signal
import time


def begin(work):
    """A process that does work(told); it calls told() whenever it was given something."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            work(lambda: os.write(write, b"."))
        finally:
            os._exit(0)
    os.close(write)
    return pid, read


def count(pid, read):
    """How often a process had told, once it has ended."""
    os.waitpid(pid, 0)
    told = 0
    while part := os.read(read, 4096):
        told += len(part)
    os.close(read)
    return told


def killed(work, times):
    """Kill more than so many, each at a random moment, later and later until as many have told.

    After each: how often all of them told.
    """
    moments = random.Random(7)
    told = 0
    for i in range(1000):
        if i > times and told > times:
            return
        pid, read = begin(work)
        time.sleep(moments.uniform(0.0, 0.03 + 0.004 * i))
        os.kill(pid, signal.SIGKILL)
        told += count(pid, read)
        yield told


def raced(work):
    """How often three told that worked at the same time."""
    racing = [begin(work) for _ in range(3)]
    return sum(count(*one) for one in racing)
