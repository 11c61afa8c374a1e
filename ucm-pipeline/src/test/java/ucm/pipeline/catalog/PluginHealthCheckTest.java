package ucm.pipeline.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import ucm.api.admin.HealthCheck;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.config.StoreConfig;

/** Health checks out of jars in the plugins folder. */
class PluginHealthCheckTest extends PluginTest {

  private static Map<String, String> sources(String module, String constructorBody) {
    Map<String, String> sources = new HashMap<>(PluginJars.store(module, "Odd", "Odd"));
    sources.put(
        "module-info.java",
        """
        module %s {
          requires ucm.api;
          provides ucm.api.Store with %s.Odd;
          provides ucm.api.admin.HealthCheck with %s.OddCheck;
        }
        """
            .formatted(module, module, module));
    sources.put(
        "OddCheck.java",
        """
        package %s;
        import ucm.api.admin.*;
        import ucm.api.config.*;
        public final class OddCheck implements HealthCheck {
          public OddCheck() { %s }
          public java.util.List<Finding> run(
              StoreConfig config, java.util.List<String> stages) {
            return java.util.List.of(
                Finding.ok("odd", stages.contains("Odd") ? "asked" : "not asked"));
          }
        }
        """
            .formatted(module, constructorBody));
    return sources;
  }

  @Test
  void healthCheckOfAPluginRunsBesideThoseOfUcm() throws IOException {
    plugin("odd.jar", sources("acme.odd", ""));
    StoreCatalog catalog = find();
    assertThat(catalog.problems()).isEmpty();
    List<HealthCheck> own =
        catalog.healthChecks().stream()
            .filter(check -> check.getClass().getName().equals("acme.odd.OddCheck"))
            .toList();
    assertThat(own).hasSize(1);
    StoreConfig none = StoreConfig.of(Map.of());
    assertThat(own.getFirst().run(none, List.of("Cache", "Odd")))
        .containsExactly(Finding.ok("odd", "asked"));
    assertThat(own.getFirst().run(none, List.of("Cache", "Odder")))
        .containsExactly(Finding.ok("odd", "not asked"));
  }

  @Test
  void healthCheckThatCannotBeMadeIsAFindingAndItsStoreCanBeUsed() throws IOException {
    plugin(
        "odd.jar", sources("acme.odd", "if (true) throw new IllegalStateException(\"no luck\");"));
    StoreCatalog catalog = find();
    assertThat(catalog.names()).contains("Odd");
    assertThat(catalog.problems()).isEmpty();
    StoreConfig none = StoreConfig.of(Map.of());
    assertThat(catalog.healthChecks().getLast().run(none, List.of()))
        .singleElement()
        .asString()
        .contains("odd.jar", "the health check acme.odd.OddCheck cannot be made", "no luck");
  }
}
