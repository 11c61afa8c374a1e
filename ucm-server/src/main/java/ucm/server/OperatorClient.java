package ucm.server;

import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.lite.trace.FileFault;
import ucm.server.protocol.Frame;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.HelloMessage;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.ProtocolException;

/**
 * An operator's connection to a running daemon. Answers are JSON texts. What it throws says which daemon was
 * asked, what came of it and what to do. Used by one thread.
 */
public final class OperatorClient implements AutoCloseable {

  // Work that takes longer says how far it is.
  private static final Duration PATIENCE = Duration.ofSeconds(90);
  // A daemon gives what is being stored two minutes, and each pipeline one.
  private static final Duration TO_END = Duration.ofMinutes(10);

  private final Path socket;
  private final String command;
  private final SocketChannel channel;
  private final Selector selector;
  private final String version;
  private int sequence;

  private OperatorClient(
      Path socket, String command, SocketChannel channel, Selector selector, byte[] token)
      throws IOException {
    this.socket = socket;
    this.command = command;
    this.channel = channel;
    this.selector = selector;
    channel.configureBlocking(false);
    SelectionKey _ = channel.register(selector, SelectionKey.OP_READ);
    HelloMessage hello = new HelloMessage(token, HelloMessage.OBSERVER, command);
    FrameReader welcome =
        ask(hello.write(begin(MessageType.HELLO)), MessageType.WELCOME, PATIENCE, null);
    try {
      var _ = welcome.u16();
      version = welcome.string();
    } catch (ProtocolException e) {
      throw new IOException(e);
    }
  }

  /**
   * Connects.
   *
   * @param command who asks, for people, for example {@code ucm serve drain}
   * @throws StoreException when no daemon answers, or it does not admit this client
   */
  public static OperatorClient open(Path socket, String command) {
    try {
      Daemon.requireSocket(socket);
      byte[] token = Daemon.token(socket);
      SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket));
      try {
        return new OperatorClient(socket, command, channel, Selector.open(), token);
      } catch (IOException | StoreException e) {
        channel.close();
        throw e;
      }
    } catch (NoSuchFileException e) {
      throw new StoreException(
          "no ucm serve answers at %s: there is no %s; start it, or name its --socket"
              .formatted(socket, e.getMessage()),
          e);
    } catch (IOException e) {
      throw new StoreException(
          "no ucm serve answers at %s: %s; start it, or name its --socket"
              .formatted(socket, FileFault.of(e)),
          e);
    }
  }

  /** The version that the daemon says it has. */
  public String version() {
    return version;
  }

  /** What it serves. */
  public String status() {
    return text(begin(MessageType.STATUS), MessageType.STATUS_TEXT, null);
  }

  /**
   * Has it take new values of a configuration.
   *
   * @param name what engines call the configuration: the absolute path of its file
   * @param yaml its text
   */
  public String reload(String name, String yaml) {
    return report(begin(MessageType.RELOAD).string(name).string(yaml), null);
  }

  /**
   * Has it store nothing more, or again.
   *
   * @param seconds how long it waits for what is being stored
   * @param observer told how far it is
   */
  public String drain(boolean drains, int seconds, @Nullable Observer observer) {
    return report(begin(MessageType.DRAIN).u8(drains ? 1 : 0).u32(seconds), observer);
  }

  /** Has it remove all blocks of its pipelines; the observer is told how many are gone. */
  public String clear(@Nullable Observer observer) {
    return report(begin(MessageType.CLEAR), observer);
  }

  /** Sets what it logs; empty to ask. */
  public String logLevel(String level) {
    return report(begin(MessageType.LOG_LEVEL).string(level), null);
  }

  /** Ends it, and waits until what engines have saved is stored. */
  public void stop() {
    exchange(begin(MessageType.STOP), MessageType.DONE, TO_END, null);
  }

  private FrameWriter begin(int type) {
    return new FrameWriter(type, ++sequence);
  }

  private String report(FrameWriter question, @Nullable Observer observer) {
    return text(question, MessageType.REPORT, observer);
  }

  private String text(FrameWriter question, int expected, @Nullable Observer observer) {
    try {
      return exchange(question, expected, PATIENCE, observer).string();
    } catch (ProtocolException e) {
      throw new StoreException("the daemon at " + socket + " says no text: " + e.getMessage(), e);
    }
  }

  private FrameReader exchange(
      FrameWriter question, int expected, Duration most, @Nullable Observer observer) {
    try {
      return ask(question, expected, most, observer);
    } catch (IOException e) {
      throw new StoreException(
          "%s: the daemon at %s did not answer: %s; see its log"
              .formatted(command, socket, FileFault.of(e)),
          e);
    }
  }

  private FrameReader ask(
      FrameWriter question, int expected, Duration most, @Nullable Observer observer)
      throws IOException {
    question.writeTo(channel);
    try {
      while (true) {
        Frame answer = Frame.read(new PatientReads(most));
        if (answer == null) {
          throw new EOFException("it closed the connection");
        }
        FrameReader body = new FrameReader(answer.body());
        if (answer.type() == MessageType.REFUSED) {
          throw refused(body.u16(), body.string());
        }
        if (answer.type() == expected) {
          return body;
        }
        if (answer.type() != MessageType.PROGRESS) {
          throw new IOException("a message of type " + answer.type() + " is not expected");
        }
        var _ = body.string();
        if (observer != null) {
          observer.at(body.u64(), body.u64());
        }
      }
    } catch (ProtocolException e) {
      throw new IOException(String.valueOf(e.getMessage()), e);
    }
  }

  private RefusedException refused(int code, String text) {
    ProtocolException cause = new ProtocolException(code, text);
    return switch (code) {
      case ProtocolException.UNKNOWN_TYPE ->
          new RefusedException(
              "the daemon at %s has version %s, which does not know %s: restart it with the version of this command"
                  .formatted(socket, version, command),
              false,
              cause);
      case ProtocolException.REFUSED_ENGINE -> new RefusedException(text, true, cause);
      default ->
          new RefusedException(
              "the daemon at %s refuses (%s): %s".formatted(socket, code, text), false, cause);
    };
  }

  /** Reads that wait for some time at the most. */
  private final class PatientReads implements ReadableByteChannel {

    private final Duration most;

    PatientReads(Duration most) {
      this.most = most;
    }

    @Override
    public int read(ByteBuffer into) throws IOException {
      int read = channel.read(into);
      if (read == 0 && selector.select(most.toMillis()) == 0) {
        throw new SocketTimeoutException("nothing came for " + most.toSeconds() + " s");
      }
      selector.selectedKeys().clear();
      return read;
    }

    @Override
    public boolean isOpen() {
      return channel.isOpen();
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }

  @Override
  public void close() {
    try {
      selector.close();
      channel.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
