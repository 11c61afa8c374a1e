package ucm.pipeline.config;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigProblem;

/**
 * Paths of a configuration that do not begin at the root. They mean the folder of the file, whichever
 * process reads it: an engine, the daemon, or a command.
 */
final class RelativePaths {

  private RelativePaths() {}

  /** The same configuration with paths that begin at the root; bad values stay as they are. */
  static UcmConfig resolved(UcmConfig read, @Nullable Path folder) {
    if (folder == null) {
      return read;
    }
    return changed(
        read,
        (setting, paths) -> at(setting, paths.stream().map(path -> in(folder, path)).toList()));
  }

  /**
   * The same configuration, which must have none.
   *
   * @throws ConfigException when it has some
   */
  static UcmConfig refused(UcmConfig read) {
    List<ConfigProblem> problems = new ArrayList<>();
    UcmConfig _ =
        changed(
            read,
            (setting, paths) -> {
              problems.add(
                  ConfigProblem.error(
                          setting.valueAt(),
                          setting.key(),
                          "found %s, which is relative, and there is no file whose folder it could begin"
                                  .formatted(setting.shown())
                              + " at: write the whole path, from / on")
                      .about(setting.shown(), "paths from / on"));
              return setting;
            });
    if (!problems.isEmpty()) {
      throw new ConfigException(new ConfigReport(problems));
    }
    return read;
  }

  private static UcmConfig changed(
      UcmConfig read, BiFunction<Setting, List<String>, Setting> change) {
    return new UcmConfig(
        read.source(),
        read.connectorName(),
        read.connectorStart(),
        changed(read.topLevel(), change),
        changed(read.connector(), change),
        read.shapeFindings());
  }

  private static Map<String, Setting> changed(
      Map<String, Setting> settings, BiFunction<Setting, List<String>, Setting> change) {
    Map<String, Setting> all = new LinkedHashMap<>(settings);
    all.replaceAll(
        (name, setting) ->
            paths(setting)
                .filter(paths -> !paths.stream().allMatch(RelativePaths::isWhole))
                .map(paths -> change.apply(setting, paths))
                .orElse(setting));
    return all;
  }

  private static Optional<List<String>> paths(Setting setting) {
    Object raw = setting.raw();
    if (raw instanceof String path
        && setting.key().equals(ConnectorSettings.METRICS_CONFIG_PATH.name())) {
      return Optional.of(List.of(path));
    }
    if (raw == null || !setting.key().endsWith(CommonKeys.STORAGE_BACKENDS.name())) {
      return Optional.empty();
    }
    try {
      return Optional.of(ConfigKey.paths(setting.key()).parse(raw));
    } catch (IllegalArgumentException e) {
      // The check of the configuration says so.
      return Optional.empty();
    }
  }

  private static boolean isWhole(String path) {
    return path.startsWith("/");
  }

  private static String in(Path folder, String path) {
    try {
      return isWhole(path) ? path : folder.resolve(path).normalize().toString();
    } catch (InvalidPathException e) {
      return path;
    }
  }

  /** One path stays a text unless that would be taken for several. */
  private static Setting at(Setting setting, List<String> paths) {
    String first = paths.getFirst();
    Object raw = paths.size() == 1 && !first.contains(":") ? first : paths;
    return new Setting(setting.key(), raw, setting.keyAt(), setting.valueAt(), setting.fault());
  }
}
