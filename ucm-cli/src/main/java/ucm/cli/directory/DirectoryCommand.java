package ucm.cli.directory;

import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import picocli.CommandLine.Mixin;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.config.ConfigKey;
import ucm.cli.output.Figures;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.runtime.Cleanup;

/** A command that works on directories of blocks: with progress, until Ctrl-C. */
abstract class DirectoryCommand extends JsonCommand {

  @Mixin private DirectoriesInput input = new DirectoriesInput();

  /** The directories; settings of the command line come before those of a file. */
  StoreDirectories open(Map<ConfigKey<?>, Object> more) {
    return input.open(more);
  }

  static <R> R onBlocks(Function<Observer, R> work) {
    return run("blocks", 1, work);
  }

  static <R> R onBytes(Function<Observer, R> work) {
    return run("MiB", (long) Figures.MIB, work);
  }

  private static <R> R run(String what, long unit, Function<Observer, R> work) {
    try (Cleanup cleanup = new Cleanup()) {
      return work.apply(cleanup.add(new Work(what, unit)));
    }
  }

  /** Prints what the work came to, unless it was broken off. */
  final void printWhole(Supplier<?> data, Runnable text) {
    if (!Cleanup.interrupted()) {
      print(data, text);
    }
  }

  private static final class Work implements Observer, AutoCloseable {

    private final Progress progress;
    private final long unit;
    private volatile boolean stopped;

    Work(String what, long unit) {
      this.progress = new Progress(what, 0);
      this.unit = unit;
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
}
