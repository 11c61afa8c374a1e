package ucm.pipeline.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.pipeline.config.UcmConfig;

/** A plugin whose keys cannot be had, or whose constructor does not come back, is named with its place. */
class PluginKeysTest extends PluginTest {

  private void odd(String constructor, String keys) throws IOException {
    String body =
        PluginJars.STORE_BODY
            .replace("return java.util.List.of();", keys)
            .concat("public Odd() { " + constructor + " }\n");
    String source =
        PluginJars.storeClass("acme.odd", "Odd", "Odd").replace(PluginJars.STORE_BODY, body);
    Map<String, String> sources = new HashMap<>(PluginJars.store("acme.odd", "Odd", "Odd"));
    sources.put("Odd.java", source);
    plugin("odd.jar", sources);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "return null;",
        "throw new IllegalStateException(\"no keys today\");",
        "return java.util.Arrays.asList((ucm.api.config.ConfigKey<?>) null);",
        "throw new NoClassDefFoundError(\"acme/Gone\");"
      })
  void keysThatCannotBeHadAreAnErrorOfTheirStage(String keys) throws IOException {
    odd("", keys);
    StoreCatalog catalog = find();
    assertThat(UcmConfig.of("Odd", Map.of()).check(catalog).text())
        .contains("error: could not be checked: configKeys() of the store Odd in " + plugins)
        .contains("[Odd]", "1 error");
    assertThat(UcmConfig.of("Odd", Map.of()).effective(catalog).text()).contains("[pipeline]");
    assertThat(catalog.configKeys()).containsKey("Odd");
  }

  @Test
  void aConstructorThatHangsIsWaitedForOnce() throws IOException {
    odd("while (true) { java.util.concurrent.locks.LockSupport.park(); }", "return null;");
    StoreCatalog catalog = find();
    assertThatThrownBy(() -> catalog.create("Odd"))
        .hasMessageContaining("the store Odd in " + plugins)
        .hasMessageContaining("its constructor has not come back within 10 s");
    assertThat(UcmConfig.of("Odd", Map.of()).check(catalog).text())
        .contains("the store Odd in " + plugins, "its constructor did not come back before");
  }
}
