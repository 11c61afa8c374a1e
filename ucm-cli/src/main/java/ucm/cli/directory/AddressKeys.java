package ucm.cli.directory;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import ucm.api.CommonKeys;
import ucm.api.admin.AddressedStore;
import ucm.api.admin.DirectoryStore;
import ucm.api.admin.StoreDirectories;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.cli.output.UsageException;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.UcmConfig;

/** Addresses of blocks such as {@code s3://bucket/prefix}, and the keys that are told beside them. */
public final class AddressKeys {

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
  StoreDirectories open(
      String address, @Nullable Path config, Map<ConfigKey<?>, Object> more, StoreCatalog catalog) {
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
    StoreConfig values = StoreConfig.of(Map.of());
    if (config != null) {
      UcmConfig read = UcmConfig.read(config);
      ConfigReport report = read.check(catalog);
      UsageException.when(report.hasErrors(), report.text());
      values = read.storeConfig();
    }
    ConfigOrigin origin = ConfigOrigin.of("the command line");
    Map<String, StoreConfig.Value> said = new LinkedHashMap<>();
    UsageException.accepted(() -> store.keysOf(address))
        .forEach((key, value) -> said.put(key, new StoreConfig.Value(value, origin)));
    set.forEach((key, value) -> said.put(key, new StoreConfig.Value(typed(value), origin)));
    more.forEach((key, value) -> said.put(key.name(), new StoreConfig.Value(value, origin)));
    return opened(store, values.with(said));
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
    Optional<StoreDirectories> blocks = store.blocks(values);
    requireFine(values);
    return blocks.orElseThrow();
  }

  /** The blocks in a directory, which an engine has made or will use as {@code Posix} does. */
  static StoreDirectories directory(Path path, String store, StoreCatalog catalog) {
    if (!(catalog.create(store) instanceof DirectoryStore known)) {
      throw new UsageException("the store " + store + " keeps no blocks in directories");
    }
    String name = path.toAbsolutePath().normalize().toString();
    StoreConfig values = StoreConfig.of(Map.of(CommonKeys.STORAGE_BACKENDS.name(), List.of(name)));
    StoreDirectories opened = known.directories(values);
    requireFine(values);
    return opened;
  }

  static void requireFine(StoreConfig values) {
    UsageException.when(
        values.hasErrors(),
        values.problems().stream()
            .filter(ConfigProblem::isError)
            .map(problem -> problem.key() + " " + problem.message())
            .collect(Collectors.joining("; ")));
  }
}
