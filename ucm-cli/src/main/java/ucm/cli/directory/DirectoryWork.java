package ucm.cli.directory;

import java.util.function.Function;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.cli.output.Figures;
import ucm.cli.output.Progress;
import ucm.cli.runtime.Cleanup;

/** Work on directories as the commands of {@code ucm store} do it: with progress, until Ctrl-C. */
final class DirectoryWork implements Observer, AutoCloseable {

  private final Progress progress;
  private final long unit;
  private volatile boolean stopped;

  private DirectoryWork(String what, long unit) {
    this.unit = unit;
    this.progress = new Progress(what, 0);
  }

  static <R> R onBlocks(Function<Observer, R> work) {
    return run("blocks", 1, work);
  }

  static <R> R onBytes(Function<Observer, R> work) {
    return run("MiB", (long) Figures.MIB, work);
  }

  private static <R> R run(String what, long unit, Function<Observer, R> work) {
    try (Cleanup cleanup = new Cleanup()) {
      return work.apply(cleanup.add(new DirectoryWork(what, unit)));
    }
  }

  @Override
  public void at(long done, long total) {
    if (!stopped) {
      progress.at(done / unit, total / unit);
    }
  }

  @Override
  public boolean isStopped() {
    return stopped;
  }

  @Override
  public void close() {
    stopped = true;
    progress.close();
  }
}
