package ucm.server;

import java.io.EOFException;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import ucm.server.protocol.Frame;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.HelloMessage;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.ProtocolException;

/**
 * One admitted connection. Any thread may ask; one thread reads the answers, by {@link #call} or {@link
 * #serve}. A daemon that takes no bytes for a second loses it.
 */
final class DaemonConnection implements AutoCloseable {

  private static final int SEND_SECONDS = 1;
  private static final String CLOSED = "the connection is closed";

  private record Question(int expected, CompletableFuture<FrameReader> answer) {}

  private final SocketChannel channel;
  private final Map<Integer, Question> questions = new ConcurrentHashMap<>();
  private volatile boolean ended;
  // Guarded by the channel.
  private int sequence;

  private DaemonConnection(SocketChannel channel) {
    this.channel = channel;
  }

  /**
   * Connects.
   *
   * @param role of {@link HelloMessage}
   * @throws IOException when no daemon answers
   * @throws ProtocolException when it refuses
   */
  static DaemonConnection open(Path socket, int role, String client)
      throws IOException, ProtocolException {
    HelloMessage hello = new HelloMessage(Daemon.token(socket), role, client);
    DaemonConnection connection =
        new DaemonConnection(SocketChannel.open(UnixDomainSocketAddress.of(socket)));
    try {
      FrameReader _ = connection.call(MessageType.HELLO, hello::write, MessageType.WELCOME);
      return connection;
    } catch (IOException | ProtocolException | RuntimeException e) {
      connection.close();
      throw e;
    }
  }

  /** Sends a message that is not answered. */
  void tell(int type, UnaryOperator<FrameWriter> body) throws IOException {
    send(body.apply(new FrameWriter(type, 0)));
  }

  /**
   * Sends a message that is answered.
   *
   * @param expected type of the answer
   * @return the answer; fails with {@link ProtocolException} or {@link IOException}
   */
  CompletableFuture<FrameReader> ask(int type, UnaryOperator<FrameWriter> body, int expected)
      throws IOException {
    CompletableFuture<FrameReader> answer = new CompletableFuture<>();
    synchronized (channel) {
      sequence = sequence % Integer.MAX_VALUE + 1;
      questions.put(sequence, new Question(expected, answer));
      send(body.apply(new FrameWriter(type, sequence)));
    }
    if (ended) {
      answer.completeExceptionally(new EOFException("the connection has ended"));
    }
    return answer;
  }

  private void send(FrameWriter frame) throws IOException {
    CompletableFuture<Void> sent =
        new CompletableFuture<Void>().orTimeout(SEND_SECONDS, TimeUnit.SECONDS);
    // Closing the channel ends the write.
    CompletableFuture<Void> _ =
        sent.whenComplete(
            (done, late) -> {
              if (late != null) {
                close();
              }
            });
    try {
      synchronized (channel) {
        frame.writeTo(channel);
      }
    } catch (ClosedChannelException e) {
      String late = "it took no bytes for " + SEND_SECONDS + " s";
      throw new IOException(sent.isDone() ? late : CLOSED, e);
    } finally {
      sent.complete(null);
    }
  }

  /** Asks, and reads the answer in this thread, for as long as that takes. */
  FrameReader call(int type, UnaryOperator<FrameWriter> body, int expected)
      throws IOException, ProtocolException {
    CompletableFuture<FrameReader> answer = ask(type, body, expected);
    while (!answer.isDone()) {
      receive();
    }
    return Objects.requireNonNull(await(answer, 0));
  }

  /** Reads answers until the connection has ended; says why it has. */
  Exception serve() {
    Exception why;
    try {
      while (true) {
        receive();
      }
    } catch (IOException | ProtocolException e) {
      why = e;
    }
    ended = true;
    questions.values().forEach(question -> question.answer.completeExceptionally(why));
    return why;
  }

  private void receive() throws IOException, ProtocolException {
    Frame frame;
    try {
      frame = Frame.read(channel);
    } catch (ClosedChannelException e) {
      throw new IOException(CLOSED, e);
    }
    if (frame == null) {
      throw new EOFException("it closed the connection");
    }
    FrameReader body = new FrameReader(frame.body());
    Question question = questions.remove(frame.sequence());
    if (frame.type() == MessageType.REFUSED) {
      ProtocolException refusal = new ProtocolException(body.u16(), body.string());
      if (question == null) {
        throw refusal;
      }
      question.answer.completeExceptionally(refusal);
    } else if (question != null && question.expected == frame.type()) {
      question.answer.complete(body);
    } else {
      throw ProtocolException.bad("a message of type " + frame.type() + " is not expected");
    }
  }

  /**
   * Waits for an answer.
   *
   * @return null when it does not come in time, or the thread is interrupted
   * @throws IOException when the connection ends before it
   * @throws ProtocolException when the daemon refuses
   */
  static @Nullable FrameReader await(CompletableFuture<FrameReader> answer, long millis)
      throws IOException, ProtocolException {
    try {
      return answer.get(millis, TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      return null;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return null;
    } catch (ExecutionException e) {
      Throwable cause = e.getCause();
      if (cause instanceof ProtocolException refusal) {
        throw refusal;
      }
      throw new IOException(cause == null ? e.toString() : cause.getMessage(), e);
    }
  }

  @Override
  public void close() {
    try {
      channel.close();
    } catch (IOException e) {
      // It has ended all the same.
      ended = true;
    }
  }
}
