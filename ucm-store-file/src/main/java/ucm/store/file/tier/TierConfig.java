package ucm.store.file.tier;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;

/**
 * What a store of files is told as the upper of two tiers: its keys, and their values, checked.
 *
 * @param files what it is told as a store of files
 */
record TierConfig(
    FileStoreConfig files, boolean writesThrough, boolean admitsAll, long stagingBytes) {

  /** The keys of a kind of store. */
  record Keys(
      ConfigKey<List<String>> directories,
      ConfigKey<String> writePolicy,
      ConfigKey<String> admission,
      ConfigKey<Integer> stagingMb) {

    static Keys of(StoreKind kind) {
      String below = " Acted on where a stage follows " + kind.name() + ".";
      return new Keys(
          ConfigKey.paths(kind.key("storage_backends"))
              .defaultDescribed("storage_backends")
              .doc(
                  ("The directories of %1$s where they are not storage_backends, as in %1$s|Nfs:"
                          + " local ones here, and those of Nfs in storage_backends.")
                      .formatted(kind.name())),
          ConfigKey.choice(kind.key("write_policy"), WRITE_THROUGH, WRITE_BACK)
              .defaultTo(WRITE_THROUGH)
              .doc(
                  String.format(
                      "When blocks dumped here are written to the next stage: "
                          + "write_through, at once and in the background, and flush waits for "
                          + "it; write_back, when they are to be removed here, and flush does "
                          + "not wait.%s",
                      below)),
          ConfigKey.choice(kind.key("admission"), ALWAYS, SECOND_USE)
              .defaultTo(ALWAYS)
              .doc(
                  String.format(
                      "Which blocks loaded from the next stage are kept here as well, and "
                          + "read there once more for that: always, each; second_use, those "
                          + "that are loaded from it for the second time.%s",
                      below)),
          ConfigKey.integer(kind.key("staging_mb"))
              .range(2, 1 << 20)
              .defaultTo(256)
              .unit("MiB")
              .doc(
                  "Host memory through which blocks go between here and the next stage in the"
                      + " background, half for each way, and room for a block at least."
                      + below));
    }
  }

  private static final String WRITE_THROUGH = "write_through";
  private static final String WRITE_BACK = "write_back";
  private static final String ALWAYS = "always";
  private static final String SECOND_USE = "second_use";
  private static final int MIB_SHIFT = 20;

  /** All keys of a kind of store. */
  static List<ConfigKey<?>> keys(StoreKind kind, List<ConfigKey<?>> ofFiles) {
    Keys own = Keys.of(kind);
    List<ConfigKey<?>> all = new ArrayList<>(ofFiles);
    all.addAll(List.of(own.directories, own.writePolicy, own.admission, own.stagingMb));
    return List.copyOf(all);
  }

  /** The configuration as a store of files knows it, which has one name for its directories. */
  static StoreConfig ofFiles(StoreKind kind, StoreConfig config) {
    ConfigKey<List<String>> own = Keys.of(kind).directories();
    return config
        .find(own)
        .map(
            directories ->
                config.with(
                    Map.of(
                        CommonKeys.STORAGE_BACKENDS.name(),
                        new StoreConfig.Value(directories, config.origin(own)))))
        .orElse(config);
  }

  /** Whether its directories are those of the stages below as well. */
  static boolean sharesDirectories(StoreKind kind, StoreConfig config) {
    List<String> others = config.find(CommonKeys.STORAGE_BACKENDS).orElse(List.of());
    return config
        .find(Keys.of(kind).directories())
        .map(own -> own.stream().anyMatch(others::contains))
        .orElse(true);
  }

  /** Reads and checks the keys; nothing when an error was recorded in {@code config}. */
  static Optional<TierConfig> from(StoreKind kind, StoreConfig config) {
    Keys keys = Keys.of(kind);
    boolean writesThrough = config.get(keys.writePolicy()).equals(WRITE_THROUGH);
    boolean admitsAll = config.get(keys.admission()).equals(ALWAYS);
    long staging = (long) config.get(keys.stagingMb()) << MIB_SHIFT;
    return FileStoreConfig.from(kind, ofFiles(kind, config))
        .map(files -> new TierConfig(files, writesThrough, admitsAll, staging));
  }
}
