package ucm.pipeline.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.pipeline.Pipeline;
import ucm.pipeline.config.UcmConfig;

/** What the catalogue finds and how it answers. */
class StoreCatalogTest extends PluginTest {

  @Test
  void listsAPluginAndMakesItsStore() throws IOException {
    Path jar = plugin("tape.jar", PluginJars.store("acme.tape", "TapeStore", "Tape"));
    StoreCatalog catalog = find();
    assertThat(catalog.problems()).isEmpty();
    assertThat(names(catalog)).containsExactly("Tape");
    assertThat(catalog.entry("Tape"))
        .hasValue(new StoreEntry("Tape", "acme.tape", "1.2.3", jar.toString(), List.of()));
    Store store = catalog.create("Tape");
    assertThat(store.name()).isEqualTo("Tape");
    assertThat(catalog.create("Tape")).isNotSameAs(store);
    assertThat(store.getClass().getModule().getLayer()).isNotSameAs(ModuleLayer.boot());
  }

  @Test
  void aFolderThatIsNotThereIsNoProblem() {
    StoreCatalog catalog = StoreCatalog.find(temp.resolve("nowhere"));
    assertThat(catalog.problems()).isEmpty();
    assertThat(catalog.searched())
        .containsExactly(
            "modules of UCM",
            "plugins folder " + temp.resolve("nowhere") + " (there is no such folder)");
    assertThat(StoreCatalog.find().searched()).containsExactly("modules of UCM");
  }

  @Test
  void aFileInPlaceOfTheFolderIsAProblem() throws IOException {
    Path file = Files.writeString(temp.resolve("file"), "x");
    assertThat(StoreCatalog.find(file).problems())
        .singleElement()
        .satisfies(p -> assertThat(p.message()).startsWith("the plugins folder cannot be read"));
  }

  @Test
  void otherFilesAreIgnored() throws IOException {
    Files.writeString(plugins.resolve("README.md"), "no jar");
    Files.writeString(plugins.resolve(".hidden.jar"), "no jar");
    Files.createDirectory(plugins.resolve(".git"));
    assertThat(entries(find())).isEmpty();
  }

  @Test
  void twoStoresWithOneNameAreAProblemThatShowsBothPlaces() throws IOException {
    Path one = plugin("one.jar", PluginJars.store("acme.one", "One", "Same"));
    Path two = plugin("two.jar", PluginJars.store("acme.two", "Two", "Same"));
    StoreCatalog catalog = find();
    assertThat(names(catalog)).isEmpty();
    assertThat(catalog.problems())
        .hasToString(
            "[%1$s: Same: the name Same is taken twice: by acme.one.One in %1$s and by acme.two.Two in %2$s; remove one, %2$s: Same: the name Same is taken twice: by acme.two.Two in %2$s and by acme.one.One in %1$s; remove one]"
                .formatted(one, two));
    assertThatThrownBy(() -> catalog.create("Same"))
        .isInstanceOf(UnknownStageException.class)
        .hasMessageStartingWith(
            "the stage Same was found but cannot be used: the name Same is taken twice");
  }

  @Test
  void aBrokenPluginHarmsNoOther() throws IOException {
    plugin("good.jar", PluginJars.store("acme.good", "Good", "Good"));
    Files.writeString(plugins.resolve("bad.jar"), "this is no zip");
    plugin(
        "half.jar",
        Map.of(
            "module-info.java",
            "module acme.half { requires ucm.api;"
                + " provides ucm.api.Store with acme.half.Anon, acme.half.Fine; }",
            "Anon.java",
            PluginJars.storeClass("acme.half", "Anon", "x").replace("@StoreName(\"x\")", ""),
            "Fine.java",
            PluginJars.storeClass("acme.half", "Fine", "Fine")));
    StoreCatalog catalog = find();
    assertThat(names(catalog)).containsExactly("Fine", "Good");
    assertThat(catalog.problems()).hasSize(2);
    assertThat(entries(catalog))
        .extracting(StoreEntry::name)
        .containsExactly("", "", "Fine", "Good");
  }

  @Test
  void anUnknownStageSaysWhatThereIsAndWhatWasNotLoaded() throws IOException {
    Path tape = plugin("tape.jar", PluginJars.store("acme.tape", "TapeStore", "Tape"));
    Files.writeString(plugins.resolve("posix.jar"), "");
    assertThat(tape).exists();
    StoreCatalog catalog = find();
    UnknownStageException failure =
        catchThrowableOfType(
            UnknownStageException.class,
            () -> Pipeline.open(UcmConfig.of("Tape|Tapes", Map.of()), catalog));
    assertThat(failure.stage()).isEqualTo("Tapes");
    assertThat(failure.nearest()).isEqualTo("Tape");
    assertThat(
            failure
                .getMessage()
                .replace(plugins.toString(), "PLUGINS")
                .replace(String.join(", ", catalog.names()), "NAMES"))
        .isEqualTo(
            """
            there is no stage Tapes; did you mean Tape? Found: NAMES
            searched: modules of UCM; plugins folder PLUGINS
            not loaded: PLUGINS/posix.jar: is no jar that can be read: zip file is empty\
            """);
    assertThatThrownBy(() -> StoreCatalog.of(Map.of()).create("Cache"))
        .hasMessage("there is no stage Cache; Found: none\nsearched: given by the program");
  }

  @Test
  void aStageOfAPluginWorksInAPipeline() throws IOException {
    plugin("tape.jar", PluginJars.store("acme.tape", "TapeStore", "Tape"));
    try (Pipeline pipeline = Pipeline.open(UcmConfig.of("Tape|Tape", Map.of()), find())) {
      assertThat(pipeline.lookupPrefix(BlockIds.of(1, 2))).isEqualTo(-1);
    }
  }
}
