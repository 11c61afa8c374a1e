package ucm.pipeline.config;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
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
    return read.changed(
        setting ->
            relative(setting)
                .map(paths -> at(setting, paths.stream().map(path -> in(folder, path)).toList()))
                .orElse(setting));
  }

  /**
   * The same configuration, which must have none.
   *
   * @throws ConfigException when it has some
   */
  static UcmConfig refused(UcmConfig read) {
    List<ConfigProblem> problems =
        Stream.concat(read.topLevel().values().stream(), read.connector().values().stream())
            .filter(setting -> relative(setting).isPresent())
            .map(RelativePaths::problem)
            .toList();
    if (!problems.isEmpty()) {
      throw new ConfigException(new ConfigReport(problems));
    }
    return read;
  }

  private static ConfigProblem problem(Setting setting) {
    String why =
        "found %s, which is relative, and there is no file whose folder it could begin at: write the whole path, from / on"
            .formatted(setting.shown());
    return setting.refused(why, "paths from / on");
  }

  /** The paths of a setting, one of which at least is relative. */
  private static Optional<List<String>> relative(Setting setting) {
    return paths(setting).filter(paths -> !paths.stream().allMatch(RelativePaths::isWhole));
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
