package ucm.cli.directory;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import ucm.api.admin.DirectoryStore;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.config.StoreConfig;
import ucm.cli.output.Figures;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;

/** A command that works on directories of blocks: with progress, until Ctrl-C. */
abstract class DirectoryCommand extends JsonCommand {
  private static final String USUAL_STORE = "Posix";

  @Parameters(
      paramLabel = "DIR",
      arity = "0..*",
      description =
          "directories of blocks, as storage_backends names them; or the address of a bucket, as in"
              + " s3://bucket/prefix")
  private List<String> directories = new ArrayList<>();

  @Option(
      names = "--config",
      paramLabel = "FILE",
      description =
          "the directories or the bucket, and the capacity, of this file's pipeline; with an"
              + " address, its other keys")
  private @Nullable Path config;

  @Mixin private AddressKeys keys = new AddressKeys();

  @Option(
      names = "--store",
      paramLabel = "NAME",
      description = "the store that wrote them, where the directories do not tell")
  private @Nullable String store;

  /** The directories; settings of the command line come before those of a file. */
  StoreDirectories open(Map<String, ?> more) {
    if (directories.stream().anyMatch(AddressKeys::isAddress)) {
      UsageException.when(directories.size() > 1, "name one address, and nothing beside it");
      return keys.open(directories.getFirst(), config, more);
    }
    StoreCatalog catalog = keys.catalog();
    UsageException.when(
        directories.isEmpty() == (config == null),
        "name directories or an address such as s3://bucket/prefix, or a file with --config; one"
            + " of the two");
    StoreConfig values;
    String name;
    if (config == null) {
      paths().forEach(DirectoryCommand::requireThere);
      values = AddressKeys.directories(paths().stream());
      name = store == null ? guess(catalog) : store;
    } else {
      UcmConfig read = AddressKeys.read(config, catalog);
      values = read.storeConfig();
      name = store == null ? read.pipeline().stages().getLast() : store;
    }
    return AddressKeys.opened(name, AddressKeys.with(values, more), catalog);
  }

  private List<Path> paths() {
    return directories.stream().map(Path::of).toList();
  }

  private static void requireThere(Path directory) {
    UsageException.when(
        Files.notExists(directory),
        String.format(
            "there is no directory %s: name one that storage_backends of an engine's configuration"
                + " names",
            directory));
  }

  /** The one that knows the directories as its own, else the one that most directories are of. */
  private String guess(StoreCatalog catalog) {
    List<String> names = names(catalog, _ -> true);
    List<String> recognized = names(catalog, known -> paths().stream().allMatch(known::recognizes));
    if (recognized.size() == 1) {
      return recognized.getFirst();
    }
    if (names.contains(USUAL_STORE)) {
      return USUAL_STORE;
    }
    UsageException.when(names.size() != 1, choice(catalog));
    return names.getFirst();
  }

  private static List<String> names(StoreCatalog catalog, Predicate<DirectoryStore> suits) {
    return catalog.names().stream()
        .filter(name -> catalog.create(name) instanceof DirectoryStore known && suits.test(known))
        .toList();
  }

  static String choice(StoreCatalog catalog) {
    List<String> names = names(catalog, _ -> true);
    return names.isEmpty()
        ? "no store that was found does"
        : "name one that does with --store: " + String.join(", ", names);
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
