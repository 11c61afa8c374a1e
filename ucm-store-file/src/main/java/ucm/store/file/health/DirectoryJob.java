package ucm.store.file.health;

import java.util.BitSet;
import java.util.function.IntPredicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Something that is to be done once on each directory. Where it fails, or the breaker is open, it is done
 * again when the directory is found to work again. Thread-safe.
 */
final class DirectoryJob {

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryJob.class);

  private final String role;
  private final String what;
  private final Volumes volumes;
  private final IntPredicate job;

  // Guarded by this: where it is left to do, is being done, and is to be done again after that.
  private final BitSet left = new BitSet();
  private final BitSet running = new BitSet();
  private final BitSet again = new BitSet();
  private boolean stopped;

  /** Does nothing yet; see {@link Volumes#begin}. */
  DirectoryJob(String role, String what, Volumes volumes, IntPredicate job) {
    this.role = role;
    this.what = what;
    this.volumes = volumes;
    this.job = job;
  }

  synchronized void start() {
    left.or(volumes.all());
    left.stream().forEach(this::begin);
  }

  /** A directory works again. */
  synchronized void recovered(int directory) {
    if (running.get(directory)) {
      again.set(directory);
    } else if (left.get(directory)) {
      begin(directory);
    }
  }

  private void begin(int directory) {
    if (!stopped) {
      running.set(directory);
      volumes.execute(role, directory, () -> run(directory));
    }
  }

  private void run(int directory) {
    boolean done = false;
    try {
      done = volumes.refusal(directory) == null && job.test(directory);
    } catch (RuntimeException e) {
      LOG.warn(
          "{}: {} failed, and is made up for later: {}", volumes.kind.name(), what, e.getMessage());
      volumes.failedInBackground(directory, e);
    } finally {
      ended(directory, done);
    }
  }

  private synchronized void ended(int directory, boolean done) {
    running.clear(directory);
    left.set(directory, !done);
    if (!done && again.get(directory)) {
      begin(directory);
    }
    again.clear(directory);
    notifyAll();
  }

  /** Does it nowhere again; what is under way goes on. */
  synchronized void stop() {
    stopped = true;
  }

  /** Waits until it is done nowhere, for as long as that takes. */
  synchronized void await() throws InterruptedException {
    while (!running.isEmpty()) {
      wait();
    }
  }
}
