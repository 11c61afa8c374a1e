package ucm.server;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.lite.trace.FileFault;
import ucm.server.protocol.ProtocolException;

/**
 * Keeps a connection, and makes a new one when it is lost: in a thread of its own, which also reads the
 * answers. Logs one line for each change of state. Thread-safe.
 */
final class DaemonLink implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(DaemonLink.class);
  private static final long FIRST_PAUSE_MILLIS = 250;
  private static final long LONGEST_PAUSE_MILLIS = 30_000;
  private static final long FIRST_SECONDS = 60;
  // A worker that takes the place of one that was killed may come before the daemon knows of its
  // end.
  private static final int FIRST_REFUSALS = 4;

  /** Tells the daemon what a new connection is for, before anything else uses it. */
  interface Opener {
    void open(DaemonConnection connection) throws IOException, ProtocolException;
  }

  private final Path socket;
  private final int role;
  private final String client;
  private final Opener opener;
  private final ExecutorService executor;
  private final CountDownLatch first = new CountDownLatch(1);
  private final CountDownLatch closed = new CountDownLatch(1);
  private volatile @Nullable DaemonConnection connection;
  private volatile @Nullable ProtocolException refusal;
  // Guarded by this.
  private String said = "";

  /**
   * Connects. When no daemon answers, this goes on in the background.
   *
   * @param role of {@link ucm.server.protocol.HelloMessage}
   * @throws StoreException when the daemon refuses the engine
   */
  DaemonLink(Path socket, int role, String client, Opener opener) {
    this.socket = socket;
    this.role = role;
    this.client = client;
    this.opener = opener;
    executor =
        Executors.newSingleThreadExecutor(
            Thread.ofPlatform().daemon().name("ucm-client-" + client).factory());
    executor.execute(this::run);
    // Its thread ends when there is nothing more to do.
    executor.shutdown();
    try {
      var _ = first.await(FIRST_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    ProtocolException refused = refusal;
    if (refused != null) {
      throw new StoreException("the daemon at " + socket + " refuses: " + refused.getMessage());
    }
  }

  /** The connection; null when there is none at the moment. */
  @Nullable DaemonConnection get() {
    return connection;
  }

  private void run() {
    long pause = FIRST_PAUSE_MILLIS;
    int refusals = 0;
    do {
      try (DaemonConnection made = DaemonConnection.open(socket, role, client)) {
        opener.open(made);
        connection = made;
        say("connected to the daemon at " + socket);
        first.countDown();
        refusals = FIRST_REFUSALS;
        pause = FIRST_PAUSE_MILLIS;
        lost(made, made.serve());
      } catch (ProtocolException e) {
        if (e.code() == ProtocolException.REFUSED_ENGINE && ++refusals == FIRST_REFUSALS) {
          refusal = e;
          first.countDown();
          return;
        }
        say("the daemon at " + socket + " refuses: " + e.getMessage());
      } catch (IOException e) {
        say(
            "no daemon at %s, so nothing is found: start ucm serve (%s)"
                .formatted(socket, FileFault.of(e)));
        first.countDown();
      }
      pause = Math.min(LONGEST_PAUSE_MILLIS, 2 * pause);
    } while (!isClosedAfter(pause));
  }

  private boolean isClosedAfter(long millis) {
    try {
      return closed.await(millis, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      return true;
    }
  }

  /** Gives a connection up; a new one is made soon. */
  void lost(@Nullable DaemonConnection of, Exception why) {
    synchronized (this) {
      if (of == null || connection != of) {
        return;
      }
      connection = null;
    }
    of.close();
    say(
        "the daemon at %s is gone (%s): nothing is found until it is back"
            .formatted(socket, why.getMessage()));
  }

  private synchronized void say(String line) {
    if (closed.getCount() > 0 && !line.equals(said)) {
      said = line;
      if (line.startsWith("connected")) {
        LOG.info("UCM: {}", line);
      } else {
        LOG.warn("UCM: {}", line);
      }
    }
  }

  /** Ends the connection. Idempotent. */
  @Override
  public void close() {
    closed.countDown();
    // Ends whatever it reads or waits for.
    executor.shutdownNow();
    executor.close();
  }
}
