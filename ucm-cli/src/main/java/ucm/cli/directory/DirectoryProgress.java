package ucm.cli.directory;

import ucm.api.admin.StoreDirectories.Observer;
import ucm.cli.output.Progress;

/** Shows how far work on directories is, and ends it on Ctrl-C. */
final class DirectoryProgress implements Observer, AutoCloseable {

  private final Progress progress;
  private final long unit;
  private volatile boolean stopped;

  /** Begins; a step on the terminal is so much of what the work counts. */
  DirectoryProgress(String what, long unit) {
    this.unit = unit;
    this.progress = new Progress(what, 0);
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
