// A gRPC client in JavaScript. How it is used, doc.go says.
'use strict';

const grpc = require('@grpc/grpc-js');
require('@grpc/grpc-js-xds').register();

const [interval, deadline, ...targets] = process.argv.slice(2);
const bytes = (b) => b;
let made = 0;
let pending = 0;
let ended = false;

// call makes one call and prints a line once it is answered.
function call(target, channel) {
  made++;
  pending++;
  const began = process.hrtime.bigint();
  const options = { deadline: Date.now() + Number(deadline) };
  let name = '';
  const done = (err) => {
    const micros = (process.hrtime.bigint() - began) / 1000n;
    const error = err ? `${grpc.status[err.code]}: ${err.details}`.replace(/\s+/g, ' ') : '';
    process.stdout.write(`${micros}\t${target}\t${err ? '' : name}\t${error}\n`);
    pending--;
    finish();
  };
  channel
    .makeUnaryRequest('/grpc.health.v1.Health/Check', bytes, bytes, Buffer.alloc(0), new grpc.Metadata(), options, done)
    .on('metadata', (header) => { name = header.get('answered-by').join(); });
}

// finish ends the program once its input has ended and every call is answered.
function finish() {
  if (ended && pending === 0) {
    process.stdout.write(`end\t${made}\n`, () => process.exit(0));
  }
}

const channels = targets.map((target) => new grpc.Client(`xds:///${target}`, grpc.credentials.createInsecure()));
const timer = setInterval(() => targets.forEach((target, i) => call(target, channels[i])), Number(interval));
process.stdin.resume().on('end', () => {
  clearInterval(timer);
  ended = true;
  finish();
});
