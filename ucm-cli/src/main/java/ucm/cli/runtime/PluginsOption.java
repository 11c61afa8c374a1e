package ucm.cli.runtime;

import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import ucm.cli.output.UsageException;
import ucm.pipeline.catalog.StoreCatalog;

/** Where plugin stores are looked for; the same option of every command that uses stores. */
public class PluginsOption {

  @Option(
      names = "--plugins",
      paramLabel = "DIR",
      description = "folder of plugin stores (default: $UCM_PLUGINS, else plugins/ of the image)")
  private @Nullable Path folder;

  public StoreCatalog catalog() {
    return StoreCatalog.find(folder());
  }

  /** The same for a command that shows what is wrong with plugins. */
  public StoreCatalog listing() {
    return StoreCatalog.list(folder());
  }

  /** The folder that plugins are looked for in. */
  public Path folder() {
    if (folder != null) {
      return existing("--plugins", folder);
    }
    String fromEnvironment = System.getenv("UCM_PLUGINS");
    // The home of a jlinked runtime is the image itself.
    return fromEnvironment != null
        ? existing("UCM_PLUGINS", Path.of(fromEnvironment))
        : Path.of(System.getProperty("java.home"), "plugins");
  }

  private static Path existing(String asked, Path folder) {
    if (!Files.isDirectory(folder)) {
      throw new UsageException(
          asked + " names " + folder + ", which is no folder: name the one that holds the plugins");
    }
    return folder;
  }
}
