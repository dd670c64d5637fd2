"""A gRPC client in Python, which is C-core. How it is used, doc.go says."""

import sys
import threading
import time

import grpc


class Caller:
    """Calls the targets and prints a line per call, from whatever thread gRPC answers in."""

    def __init__(self, deadline):
        self.deadline = deadline
        self.made = 0
        self.pending = 0
        self.changed = threading.Condition()

    def call(self, target, check):
        with self.changed:
            self.made += 1
            self.pending += 1
        began = time.monotonic()
        future = check.future(b"", timeout=self.deadline)
        future.add_done_callback(lambda f: self.done(target, began, f))

    def done(self, target, began, call):
        micros = int((time.monotonic() - began) * 1e6)
        name, error = "", ""
        if call.code() == grpc.StatusCode.OK:
            name = ",".join(value for key, value in call.initial_metadata() if key == "answered-by")
        else:
            error = " ".join(f"{call.code().name}: {call.details()}".split())
        with self.changed:
            print(micros, target, name, error, sep="\t", flush=True)
            self.pending -= 1
            self.changed.notify_all()

    def finish(self):
        with self.changed:
            self.changed.wait_for(lambda: self.pending == 0)
            print("end", self.made, sep="\t", flush=True)


def watch_input(ended):
    sys.stdin.read()
    ended.set()


def main():
    interval, deadline, *targets = sys.argv[1:]
    ended = threading.Event()
    threading.Thread(target=watch_input, args=[ended], daemon=True).start()
    channels = [grpc.insecure_channel("xds:///" + target) for target in targets]
    checks = [channel.unary_unary("/grpc.health.v1.Health/Check") for channel in channels]
    caller = Caller(int(deadline) / 1000)
    due = time.monotonic()
    while not ended.wait(max(0, due - time.monotonic())):
        due += int(interval) / 1000
        for target, check in zip(targets, checks):
            caller.call(target, check)
    caller.finish()
    for channel in channels:
        channel.close()


main()
