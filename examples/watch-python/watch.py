"""Keeps a copy of the records that a filter selects, and prints every change of it.

The modules in isthmus/ are generated from the proto file: README.md has the commands.
"""

import argparse
import sys
import time

import grpc
from google.protobuf import json_format

from isthmus.resource.v1alpha1 import resource_pb2 as api
from isthmus.resource.v1alpha1 import resource_pb2_grpc as rpc

# A request that was answered with one of these codes fails again.
FINAL = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED}

OPTIONS = [
    ("grpc.keepalive_time_ms", 30_000),  # notices a network that has gone
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.max_receive_message_length", -1),  # a record may be large
]


class Copy:
    """The selected records. It is complete from the first snapshot on."""

    def __init__(self, selected):
        self.filter = selected
        self.records = {}  # by name
        self.held = None  # the moment of the records

    def follow(self, stub):
        """Follows one stream until it breaks. The next one goes on from the held moment."""
        request = api.WatchListRequest(filter=self.filter, held=self.held)
        step = []  # of a stream that breaks, an unfinished step is dropped
        for message in stub.WatchList(request, wait_for_ready=True):
            for event in message.events:
                if event.HasField("source"):
                    print_source(event.source)
                else:
                    step.append(event)
            if step and not message.partial:
                self.apply(step)
                self.held = message.at if message.HasField("at") else None
                step = []

    def apply(self, step):
        """Applies a whole step: a commit, or a snapshot, which replaces all records."""
        before = {}  # the changed records as they were
        if step[-1].HasField("end_of_snapshot"):
            before, self.records = self.records, {}
        for event in step:
            match event.WhichOneof("event"):
                case "upsert":
                    name = name_of(event.upsert.record)
                    before.setdefault(name, self.records.get(name))
                    self.records[name] = event.upsert.record
                case "delete":
                    name = name_of(event.delete.record)
                    before.setdefault(name, self.records.pop(name, None))
                case "reset":
                    print("# reset:", event.reset.reason)
                case "end_of_snapshot":
                    missing = [source.name for source in event.end_of_snapshot.sources if not source.primed]
                    print(f"# snapshot; records: {len(self.records)}; not listed yet:", ", ".join(missing) or "none")
        for name, old in sorted(before.items()):
            print_change(name, old, self.records.get(name))


def name_of(record):
    ref = record.ref
    return f"{ref.kind} {ref.source}/{ref.namespace}/{ref.name}"


def content_of(record):
    return getattr(record, record.WhichOneof("content")) if record else None


def print_change(name, old, new):
    old, new = content_of(old), content_of(new)
    if old == new:  # after a restart of Isthmus most records are new and say the same
        return
    if new is None:
        print("-", name)
    else:
        print("+" if old is None else "~", name, json_format.MessageToJson(new, indent=None))


def print_source(source):
    if source.removed:
        print(f"# source {source.name} is no longer configured")
    elif source.primed:
        print(f"# source {source.name} is listed")
    else:
        print(f"# source {source.name} is not listed yet; its records are missing: {source.reason}")


def main():
    parser = argparse.ArgumentParser(description="Print the records of an Isthmus, and every change of them.")
    parser.add_argument("--address", default="127.0.0.1:15020", help="of outputs.watch (default: %(default)s)")
    for field in api.Filter.DESCRIPTOR.fields:
        parser.add_argument("--" + field.name.replace("_", "-"), default="", help="default: all")
    args = vars(parser.parse_args())
    sys.stdout.reconfigure(line_buffering=True)
    with grpc.insecure_channel(args.pop("address"), OPTIONS) as channel:
        stub, copy = rpc.ResourceServiceStub(channel), Copy(api.Filter(**args))
        while True:
            try:
                copy.follow(stub)
            except grpc.RpcError as broken:
                if broken.code() in FINAL:
                    sys.exit(f"{broken.code().name}: {broken.details()}")
                print(f"# {broken.code().name}: {broken.details()}; trying again")
            time.sleep(1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
