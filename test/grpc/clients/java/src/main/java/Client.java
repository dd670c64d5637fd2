import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Phaser;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A gRPC client in Java. How it is used, doc.go says. */
final class Client {
  private static final Metadata.Key<String> ANSWERED_BY =
      Metadata.Key.of("answered-by", Metadata.ASCII_STRING_MARSHALLER);

  private static final MethodDescriptor<byte[], byte[]> CHECK =
      MethodDescriptor.newBuilder(new Bytes(), new Bytes())
          .setType(MethodDescriptor.MethodType.UNARY)
          .setFullMethodName("grpc.health.v1.Health/Check")
          .build();

  private final String target;
  private final Channel channel;
  private final long deadlineMillis;
  private final AtomicInteger made;
  private final Phaser pending;

  private Client(String target, long deadlineMillis, AtomicInteger made, Phaser pending) {
    this.target = target;
    this.channel = Grpc.newChannelBuilder("xds:///" + target, InsecureChannelCredentials.create()).build();
    this.deadlineMillis = deadlineMillis;
    this.made = made;
    this.pending = pending;
  }

  public static void main(String[] arguments) throws Exception {
    long interval = Long.parseLong(arguments[0]);
    AtomicInteger made = new AtomicInteger();
    Phaser pending = new Phaser(1);
    List<Client> clients = new ArrayList<>();
    for (int i = 2; i < arguments.length; i++) {
      clients.add(new Client(arguments[i], Long.parseLong(arguments[1]), made, pending));
    }
    ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
    clock.scheduleAtFixedRate(() -> clients.forEach(Client::call), 0, interval, TimeUnit.MILLISECONDS);
    System.in.readAllBytes();
    clock.shutdown();
    clock.awaitTermination(1, TimeUnit.MINUTES);
    pending.arriveAndAwaitAdvance();
    System.out.println("end\t" + made);
    System.exit(0);
  }

  /** Makes one call, and prints a line once it is answered. */
  private void call() {
    made.incrementAndGet();
    pending.register();
    long began = System.nanoTime();
    CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(deadlineMillis, TimeUnit.MILLISECONDS);
    ClientCall<byte[], byte[]> call = channel.newCall(CHECK, options);
    call.start(new Answer(began), new Metadata());
    call.request(1);
    call.sendMessage(new byte[0]);
    call.halfClose();
  }

  private final class Answer extends ClientCall.Listener<byte[]> {
    private final long began;
    private String name = "";

    Answer(long began) {
      this.began = began;
    }

    @Override
    public void onHeaders(Metadata headers) {
      name = String.valueOf(headers.get(ANSWERED_BY));
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      long micros = (System.nanoTime() - began) / 1000;
      String error = "";
      if (!status.isOk()) {
        name = "";
        error = (status.getCode() + ": " + status.getDescription()).replaceAll("\\s+", " ");
      }
      System.out.println(micros + "\t" + target + "\t" + name + "\t" + error);
      pending.arriveAndDeregister();
    }
  }

  /** Messages are what their bytes are. */
  private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
    @Override
    public InputStream stream(byte[] value) {
      return new ByteArrayInputStream(value);
    }

    @Override
    public byte[] parse(InputStream stream) {
      try {
        return stream.readAllBytes();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
