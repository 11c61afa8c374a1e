package ucm.store.ds3fs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.StoreException;

final class UsrbioLibraryTest {

  @TempDir private Path folder;

  @Test
  void isFoundByFileByFolderInTheLibraryPathAndWhere3fsIsInstalled() throws Exception {
    Path file = Files.createFile(folder.resolve(UsrbioLibrary.FILE_NAME));
    String expected = file.toString();
    assertThat(UsrbioLibrary.find(expected, null, List.of())).isEqualTo(expected);
    assertThat(UsrbioLibrary.find(folder.toString(), null, List.of())).isEqualTo(expected);
    assertThat(UsrbioLibrary.find("", "/nowhere::" + folder, List.of())).isEqualTo(expected);
    assertThat(UsrbioLibrary.find("", null, List.of(folder))).isEqualTo(expected);
    assertThat(UsrbioLibrary.find("", null, List.of())).isEqualTo("hf3fs_api_shared");
  }

  @Test
  void saysWhatToInstallWhereThereIsNone() {
    UnsatisfiedLinkError cause = new UnsatisfiedLinkError("no such file");
    assertThat(UsrbioLibrary.unusable("hf3fs_api_shared", cause, "/a:/b", List.of(folder)))
        .hasMessageContainingAll(
            "libhf3fs_api_shared.so was not found in [/a, /b, " + folder + "]",
            "install the 3FS client",
            "ds3fs_library_path",
            "LD_LIBRARY_PATH");
    assertThat(UsrbioLibrary.unusable("/x/lib.so", cause, null, List.of()))
        .hasMessageContainingAll("/x/lib.so cannot be used: no such file", "ldd /x/lib.so");
  }

  @Test
  void staysTheOneThatWasLoadedFirst() throws Exception {
    SimulatedHf3fs.load();
    assertThat(UsrbioLibrary.require("")).isEqualTo(SimulatedHf3fs.LIBRARY.toString());
    Path other = Files.createFile(folder.resolve(UsrbioLibrary.FILE_NAME));
    assertThatThrownBy(() -> UsrbioLibrary.require(other.toString()))
        .isInstanceOf(StoreException.class)
        .hasMessageContainingAll(other.toString(), "loaded", SimulatedHf3fs.LIBRARY.toString());
  }
}
