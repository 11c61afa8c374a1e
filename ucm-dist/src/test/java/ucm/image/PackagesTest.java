package ucm.image;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Dependencies between packages point one way, and no package or file outgrows a newcomer's look. */
class PackagesTest {

  private static final int MOST_FILES = 25;
  private static final int MOST_LINES = 600;
  private static final List<String> STORES =
      List.of("posix", "nfs", "ds3fs", "s3", "valkey", "cache", "fake");
  private static final JavaClasses CLASSES =
      new ClassFileImporter()
          .withImportOption(new ImportOption.DoNotIncludeTests())
          .importPackages("ucm");

  @Test
  void seesAllModules() {
    assertThat(CLASSES).hasSizeGreaterThan(600);
    for (String part :
        List.of("api", "cli", "bench", "lite", "pipeline", "store.file", "platform")) {
      assertThat(CLASSES.containPackage("ucm." + part)).as(part).isTrue();
    }
  }

  @Test
  void thereIsNoCycleOfPackages() {
    slices().matching("ucm.(**)").should().beFreeOfCycles().check(CLASSES);
  }

  @Test
  void noPackageHasTooManyFiles() {
    Map<String, Long> files =
        CLASSES.stream()
            .filter(c -> c.isTopLevelClass() && !c.getSimpleName().equals("package-info"))
            .collect(Collectors.groupingBy(c -> c.getPackageName(), Collectors.counting()));
    assertThat(files)
        .allSatisfy((name, count) -> assertThat(count).isLessThanOrEqualTo(MOST_FILES));
  }

  @Test
  void noFileIsTooLong() throws IOException {
    try (Stream<Path> files = Files.walk(Path.of(".."))) {
      List<Path> sources =
          files
              .filter(file -> file.toString().endsWith(".java"))
              .filter(file -> !file.toString().contains("/target/"))
              .toList();
      assertThat(sources).hasSizeGreaterThan(800);
      assertThat(sources)
          .allSatisfy(
              file -> assertThat(Files.readAllLines(file)).hasSizeLessThanOrEqualTo(MOST_LINES));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"posix", "nfs", "ds3fs", "s3", "valkey", "cache", "fake", "file"})
  void noStoreKnowsAnother(String store) {
    String[] others =
        STORES.stream()
            .filter(other -> !other.equals(store))
            .map(other -> "ucm.store." + other + "..")
            .toArray(String[]::new);
    noClasses()
        .that()
        .resideInAPackage("ucm.store." + store + "..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage(others)
        .check(CLASSES);
  }

  @Test
  void theDaemonDoesNotKnowTheCommandLine() {
    noClasses()
        .that()
        .resideInAPackage("ucm.server..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("ucm.cli..", "ucm.bench..")
        .check(CLASSES);
  }

  @Test
  void storesDoNotKnowWhoUsesThem() {
    noClasses()
        .that()
        .resideInAnyPackage("ucm.store..", "ucm.platform..", "ucm.device..", "ucm.api..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("ucm.pipeline..", "ucm.lite..", "ucm.cli..", "ucm.bench..")
        .check(CLASSES);
  }
}
