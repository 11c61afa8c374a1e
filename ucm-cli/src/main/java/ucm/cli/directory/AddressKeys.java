package ucm.cli.directory;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import ucm.api.CommonKeys;
import ucm.api.admin.AddressedStore;
import ucm.api.admin.DirectoryStore;
import ucm.api.admin.StoreDirectories;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.PluginsOption;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.UcmConfig;

/** Addresses of blocks such as {@code s3://bucket/prefix}, their stores, and the keys that are told beside them. */
public final class AddressKeys extends PluginsOption {

  private static final String MARK = "://";

  @Option(
      names = "--set",
      paramLabel = "KEY=VALUE",
      description =
          "a key of the store at an address, as in s3_endpoints=https://s3.example.com; once for"
              + " each")
  private Map<String, String> set = new LinkedHashMap<>();

  static boolean isAddress(String place) {
    return place.contains(MARK);
  }

  /** The blocks at an address; what the command line says comes before a file. */
  StoreDirectories open(String address, @Nullable Path config, Map<String, ?> more) {
    StoreCatalog catalog = catalog();
    String scheme = address.substring(0, address.indexOf(MARK)).toLowerCase(Locale.ROOT);
    List<AddressedStore> stores =
        catalog.names().stream()
            .map(catalog::create)
            .filter(AddressedStore.class::isInstance)
            .map(AddressedStore.class::cast)
            .toList();
    AddressedStore store =
        stores.stream()
            .filter(each -> each.scheme().equals(scheme))
            .findFirst()
            .orElseThrow(
                () ->
                    new UsageException(
                        "no store has addresses like %s; there are %s"
                            .formatted(
                                address,
                                stores.stream()
                                    .map(each -> each.scheme() + MARK)
                                    .collect(Collectors.joining(", ")))));
    StoreConfig values =
        config == null ? StoreConfig.of(Map.of()) : read(config, catalog).storeConfig();
    Map<String, Object> said =
        new LinkedHashMap<>(UsageException.accepted(() -> store.keysOf(address)));
    set.forEach((key, value) -> said.put(key, typed(value)));
    said.putAll(more);
    return opened(store, with(values, said));
  }

  /** The configuration of a file, in which nothing is wrong. */
  static UcmConfig read(Path config, StoreCatalog catalog) {
    UcmConfig read = UcmConfig.read(config);
    ConfigReport report = read.check(catalog);
    UsageException.when(report.hasErrors(), report.text());
    return read;
  }

  /** Values with those of the command line, which come first. */
  static StoreConfig with(StoreConfig values, Map<String, ?> said) {
    ConfigOrigin origin = ConfigOrigin.of("the command line");
    Map<String, StoreConfig.Value> all = new LinkedHashMap<>();
    said.forEach((key, value) -> all.put(key, new StoreConfig.Value(value, origin)));
    return values.with(all);
  }

  /** As a file of YAML would have it. */
  private static Object typed(String value) {
    if (value.matches("-?\\d{1,18}")) {
      return Long.parseLong(value);
    }
    return "true".equals(value) || "false".equals(value) ? Boolean.valueOf(value) : value;
  }

  /** The blocks that keys of a store name. */
  static StoreDirectories opened(AddressedStore store, StoreConfig values) {
    return fine(values, store.blocks(values));
  }

  /** The blocks that keys of a store of this name name, at an address or in directories. */
  static StoreDirectories opened(String name, StoreConfig values, StoreCatalog catalog) {
    return switch (catalog.create(name)) {
      case AddressedStore store -> opened(store, values);
      case DirectoryStore store -> fine(values, Optional.of(store.directories(values)));
      default ->
          throw new UsageException(
              "the store %s keeps no blocks in directories; %s"
                  .formatted(name, DirectoryCommand.choice(catalog)));
    };
  }

  private static StoreDirectories fine(StoreConfig values, Optional<StoreDirectories> opened) {
    UsageException.when(
        values.hasErrors(),
        values.problems().stream()
            .filter(ConfigProblem::isError)
            .map(problem -> problem.key() + " " + problem.message())
            .collect(Collectors.joining("; ")));
    return opened.orElseThrow();
  }

  /** What names directories, which an engine has made or will make. */
  static StoreConfig directories(Stream<Path> paths) {
    List<String> names =
        paths.map(path -> path.toAbsolutePath().normalize().toString()).distinct().toList();
    return StoreConfig.of(Map.of(CommonKeys.STORAGE_BACKENDS.name(), names));
  }
}
