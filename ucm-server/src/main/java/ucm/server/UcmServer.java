package ucm.server;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.lite.trace.FileFault;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.connector.statistics.MetricsScopes;
import ucm.server.session.Engines;

/** The daemon: admits clients on a socket, one thread each, until it is closed or idle for long. */
public final class UcmServer implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(UcmServer.class);
  private static final Duration SWEEP = Duration.ofSeconds(1);
  private static final Duration ACCEPT_PAUSE = Duration.ofMillis(100);
  private static final int BOOT_ID_BYTES = 16;

  private final ThreadFactory threads;
  private final ServerDirectory directory;
  private final Engines engines;
  private final Duration idleExit;
  private final ServerSocketChannel listener;
  private final byte[] bootId = new byte[BOOT_ID_BYTES];
  private final Set<Connection> connections = ConcurrentHashMap.newKeySet();
  private final CountDownLatch ended = new CountDownLatch(1);
  private final long startNanos = System.nanoTime();
  private volatile long lastClientNanos = System.nanoTime();
  private final Administration administration;
  private volatile @Nullable Connection stopper;
  private volatile boolean closed;

  /**
   * Opens a daemon, which listens; clients are admitted by {@link #serve}.
   *
   * @param directory taken for it; closed with it
   * @param stores the stages that engines may name
   * @param metrics where each engine counts
   * @param stagingBytes most shared memory for the slots of an engine
   * @param idleExit ends the daemon when it had no client for so long; zero for never
   * @param process what operators may change of this process
   * @throws StoreException when it cannot listen
   */
  public static UcmServer open(
      ServerDirectory directory,
      StoreCatalog stores,
      MetricsScopes metrics,
      long stagingBytes,
      Duration idleExit,
      ProcessControl process) {
    Engines engines =
        new Engines(
            stores,
            metrics,
            directory.segmentPrefix(),
            stagingBytes,
            System::nanoTime,
            process::apply);
    return new UcmServer(directory, engines, idleExit, process);
  }

  /**
   * Listens; clients are admitted by {@link #serve}.
   *
   * @param idleExit ends the daemon when it had no client for so long; zero for never
   */
  UcmServer(ServerDirectory directory, Engines engines, Duration idleExit, ProcessControl process) {
    this(
        directory,
        engines,
        idleExit,
        process,
        Thread.ofPlatform().daemon().name("ucm-serve-client-", 0).factory());
  }

  /** The same with threads of the caller, one for each client. */
  UcmServer(
      ServerDirectory directory,
      Engines engines,
      Duration idleExit,
      ProcessControl process,
      ThreadFactory threads) {
    this.threads = threads;
    administration = new Administration(this, engines, process);
    this.directory = directory;
    this.engines = engines;
    this.idleExit = idleExit;
    new SecureRandom().nextBytes(bootId);
    try {
      listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
      // It gets its name when it listens and is private.
      Path made = ServerDirectory.fresh(directory.socket());
      Files.deleteIfExists(made);
      listener.bind(UnixDomainSocketAddress.of(made));
      Files.setPosixFilePermissions(made, PosixFilePermissions.fromString("rw-------"));
      Files.move(made, directory.socket(), StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      throw new StoreException(
          "cannot listen at " + directory.socket() + ": " + FileFault.of(e), e);
    }
  }

  /** Admits clients until the daemon ends. */
  public void serve() throws InterruptedException {
    Thread acceptor = Thread.ofPlatform().daemon().name("ucm-serve-accept").start(this::accept);
    while (!ended.await(SWEEP.toMillis(), TimeUnit.MILLISECONDS)) {
      engines.sweep();
      if (isIdle()) {
        LOG.info("no client for {} s: the daemon ends", idleExit.toSeconds());
        break;
      }
    }
    close();
    acceptor.join();
  }

  private boolean isIdle() {
    if (!connections.isEmpty()) {
      lastClientNanos = System.nanoTime();
    }
    return !idleExit.isZero() && System.nanoTime() - lastClientNanos > idleExit.toNanos();
  }

  private void accept() {
    IOException before = null;
    try {
      do {
        IOException fault = admit();
        if (fault != null && before == null) {
          LOG.warn(
              "clients wait at {}, as none can be admitted now: {}; with too many open files or"
                  + " threads, raise their limit (ulimit -n and -u, LimitNOFILE= and TasksMax= of"
                  + " the unit, or that of the container)",
              directory.socket(),
              fault.toString());
        }
        before = fault;
      } while (before == null || !ended.await(ACCEPT_PAUSE.toMillis(), TimeUnit.MILLISECONDS));
    } catch (ClosedChannelException e) {
      // The daemon ends.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Waits for a client and admits it; says why that is not possible now, as for want of descriptors or threads. */
  private @Nullable IOException admit() throws ClosedChannelException {
    try {
      SocketChannel channel = listener.accept();
      Connection connection = new Connection(this, channel);
      connections.add(connection);
      try {
        threads.newThread(connection).start();
      } catch (OutOfMemoryError e) {
        // No thread is to be had: the client is told by the end of its connection, and comes again.
        connections.remove(connection);
        channel.close();
        return new IOException(e.getMessage(), e);
      }
      return null;
    } catch (ClosedChannelException e) {
      throw e;
    } catch (IOException e) {
      return e;
    }
  }

  Engines engines() {
    return engines;
  }

  byte[] token() {
    return directory.token();
  }

  byte[] bootId() {
    return bootId;
  }

  void ended(Connection connection) {
    lastClientNanos = System.nanoTime();
    connections.remove(connection);
  }

  Administration administration() {
    return administration;
  }

  /** Has {@link #serve} end. */
  void stop() {
    ended.countDown();
  }

  /** The same; the connection is told when all is stored, and closed last. */
  void stop(Connection asks) {
    stopper = asks;
    stop();
  }

  /** What there is to say besides the engines. */
  Map<String, Object> status() {
    Map<String, Object> status = new LinkedHashMap<>();
    status.put("socket", directory.socket().toString());
    status.put("pid", ProcessHandle.current().pid());
    status.put("uptime_seconds", TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - startNanos));
    status.put("clients", connections.size());
    status.put("version", Daemon.version());
    return status;
  }

  /** Ends: no more clients, what engines have saved is stored, pipelines are closed. Idempotent. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    ended.countDown();
    try {
      listener.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    Connection last = stopper;
    connections.stream().filter(one -> one != last).forEach(Connection::close);
    engines.close();
    directory.close();
    LOG.info("the daemon at {} has ended", directory.socket());
    if (last != null) {
      last.stopped();
    }
  }
}
