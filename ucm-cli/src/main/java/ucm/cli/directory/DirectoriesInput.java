package ucm.cli.directory;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import ucm.api.CommonKeys;
import ucm.api.admin.DirectoryStore;
import ucm.api.admin.StoreDirectories;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.PluginsOption;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.UcmConfig;

/** Which directories of which store; the same for every command of {@code ucm store}. */
final class DirectoriesInput {

  private static final String USUAL_STORE = "Posix";

  @Parameters(
      paramLabel = "DIR",
      arity = "0..*",
      description = "directories of blocks, as storage_backends names them")
  private List<Path> directories = new ArrayList<>();

  @Option(
      names = "--config",
      paramLabel = "FILE",
      description = "the directories, and the capacity, of this file's pipeline")
  private @Nullable Path config;

  @Option(
      names = "--store",
      paramLabel = "NAME",
      description = "the store that wrote them, where the directories do not tell")
  private @Nullable String store;

  @Mixin private PluginsOption plugins = new PluginsOption();

  /** The directories, ready to be worked on. */
  StoreDirectories open() {
    return open(Map.of());
  }

  /** The same with settings of the command line, which come before those of a file. */
  StoreDirectories open(Map<ConfigKey<?>, Object> more) {
    StoreCatalog catalog = plugins.catalog();
    UsageException.when(
        directories.isEmpty() == (config == null),
        "name directories, or a file with --config; one of the two");
    StoreConfig values;
    String name;
    if (config == null) {
      for (Path directory : directories) {
        if (Files.notExists(directory)) {
          throw new UsageException(
              "there is no directory "
                  + directory
                  + ": name one that storage_backends of an engine's configuration names");
        }
      }
      Map<String, Object> raw = new LinkedHashMap<>();
      raw.put(
          CommonKeys.STORAGE_BACKENDS.name(),
          directories.stream().map(DirectoriesInput::absolute).distinct().toList());
      values = StoreConfig.of(raw);
      name = store == null ? guess(catalog) : store;
    } else {
      UcmConfig read = UcmConfig.read(config);
      ConfigReport report = read.check(catalog);
      UsageException.when(report.hasErrors(), report.text());
      values = read.storeConfig();
      name = store == null ? read.pipeline().stages().getLast() : store;
    }
    Map<String, StoreConfig.Value> said = new LinkedHashMap<>();
    more.forEach(
        (key, value) ->
            said.put(
                key.name(), new StoreConfig.Value(value, ConfigOrigin.of("the command line"))));
    values = values.with(said);
    if (!(catalog.create(name) instanceof DirectoryStore known)) {
      throw new UsageException(
          "the store " + name + " keeps no blocks in directories; " + choice(catalog));
    }
    StoreDirectories opened = known.directories(values);
    if (values.hasErrors()) {
      throw new UsageException(
          values.problems().stream()
              .filter(ConfigProblem::isError)
              .map(problem -> problem.key() + " " + problem.message())
              .collect(Collectors.joining("; ")));
    }
    return opened;
  }

  private static String absolute(Path directory) {
    return directory.toAbsolutePath().normalize().toString();
  }

  /** The one that knows the directories as its own, else the one that most directories are of. */
  private String guess(StoreCatalog catalog) {
    List<String> names = names(catalog);
    List<String> recognized =
        names.stream()
            .filter(name -> directories.stream().allMatch(dir -> recognizes(catalog, name, dir)))
            .toList();
    if (recognized.size() == 1) {
      return recognized.getFirst();
    }
    if (names.contains(USUAL_STORE)) {
      return USUAL_STORE;
    }
    UsageException.when(names.size() != 1, choice(catalog));
    return names.getFirst();
  }

  private static boolean recognizes(StoreCatalog catalog, String name, Path directory) {
    return catalog.create(name) instanceof DirectoryStore known && known.recognizes(directory);
  }

  private static List<String> names(StoreCatalog catalog) {
    return catalog.names().stream()
        .filter(name -> catalog.create(name) instanceof DirectoryStore)
        .toList();
  }

  private static String choice(StoreCatalog catalog) {
    List<String> names = names(catalog);
    return names.isEmpty()
        ? "no store that was found does"
        : "name one that does with --store: " + String.join(", ", names);
  }
}
