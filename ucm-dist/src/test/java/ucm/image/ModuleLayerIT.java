package ucm.image;

import static java.util.stream.Collectors.toCollection;
import static java.util.stream.Collectors.toMap;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReference;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The jars as they are shipped, as a module path of its own. */
class ModuleLayerIT {

  private static final ModuleFinder JARS =
      ModuleFinder.of(
          Stream.of(System.getProperty("ucm.modules").split(File.pathSeparator))
              .map(Path::of)
              .toArray(Path[]::new));

  /** What each of our modules exports to all. */
  private static final Map<String, Set<String>> EXPORTS =
      Map.ofEntries(
          Map.entry("ucm.api", Set.of("ucm.api", "ucm.api.admin", "ucm.api.config")),
          Map.entry("ucm.bench", Set.of()),
          Map.entry("ucm.server", Set.of()),
          Map.entry("ucm.cli", Set.of()),
          Map.entry("ucm.device", Set.of("ucm.device")),
          Map.entry("ucm.device.cuda", Set.of()),
          Map.entry(
              "ucm.lite",
              Set.of(
                  "ucm.lite.curve",
                  "ucm.lite.edit",
                  "ucm.lite.insight",
                  "ucm.lite.policy",
                  "ucm.lite.record",
                  "ucm.lite.tier",
                  "ucm.lite.trace")),
          Map.entry("ucm.metrics", Set.of("ucm.metrics")),
          Map.entry(
              "ucm.pipeline",
              Set.of(
                  "ucm.pipeline",
                  "ucm.pipeline.catalog",
                  "ucm.pipeline.config",
                  "ucm.pipeline.connector",
                  "ucm.pipeline.connector.engine",
                  "ucm.pipeline.connector.statistics",
                  "ucm.pipeline.convert",
                  "ucm.pipeline.hash")),
          Map.entry("ucm.store.cache", Set.of()),
          Map.entry("ucm.platform", Set.of()),
          Map.entry("ucm.store.ds3fs", Set.of()),
          Map.entry("ucm.store.fake", Set.of()),
          Map.entry("ucm.store.file", Set.of()),
          Map.entry("ucm.store.nfs", Set.of()),
          Map.entry("ucm.store.posix", Set.of()),
          Map.entry("ucm.store.s3", Set.of()));

  /** Modules of commands, which picocli reads. */
  private static final Set<String> COMMANDS = Set.of("ucm.cli", "ucm.bench");

  private static List<ModuleDescriptor> modules() {
    return JARS.findAll().stream().map(ModuleReference::descriptor).toList();
  }

  private static Stream<ModuleDescriptor> ours() {
    return modules().stream().filter(module -> module.name().startsWith("ucm."));
  }

  @Test
  void nameThemselvesAndAreNeverAutomatic() {
    assertThat(modules()).noneMatch(ModuleDescriptor::isAutomatic);
    assertThat(modules()).extracting(ModuleDescriptor::name).doesNotHaveDuplicates();
    assertThat(ours()).allMatch(module -> module.rawVersion().isPresent());
  }

  @Test
  void exportWhatIsApiAndNothingElse() {
    Map<String, Set<String>> found =
        ours()
            .collect(
                toMap(
                    ModuleDescriptor::name,
                    module ->
                        module.exports().stream()
                            .filter(exported -> !exported.isQualified())
                            .map(ModuleDescriptor.Exports::source)
                            .collect(toCollection(TreeSet::new))));
    assertThat(found).isEqualTo(EXPORTS);
    assertThat(ours())
        .allMatch(module -> module.opens().isEmpty() || COMMANDS.contains(module.name()));
  }
}
