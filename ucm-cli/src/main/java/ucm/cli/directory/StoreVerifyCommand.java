package ucm.cli.directory;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.VerifyPlan;
import ucm.api.admin.StoreDirectories.VerifyResult;
import ucm.cli.output.ByteText;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.runtime.Cleanup;

/** {@code ucm store verify}: whether the bytes of blocks are those that were written. */
@Command(
    name = "verify",
    description =
        "Reads every block and compares its checksums; exit code 1 when one is damaged or cannot be"
            + " read. It does not count as use. Without --quarantine nothing is changed.")
final class StoreVerifyCommand extends JsonCommand {

  @Mixin private DirectoriesInput input = new DirectoriesInput();
  @Mixin private StoreReadOptions reading = new StoreReadOptions();

  @Option(
      names = "--quarantine",
      description = "move damaged files out of the way, as engines do when they find them")
  private boolean quarantine;

  @Override
  public Integer call() {
    reading.require();
    StoreDirectories directories = input.open();
    VerifyPlan plan = new VerifyPlan(reading.threads(), reading.maxBytesPerSecond(), quarantine);
    List<Damage> damages = new ArrayList<>();
    VerifyResult result;
    try (Cleanup cleanup = new Cleanup()) {
      DirectoryProgress work = cleanup.add(new DirectoryProgress("MiB", (long) ByteText.MIB));
      result = directories.verify(plan, work, damages::add);
    }
    if (!Cleanup.interrupted()) {
      print(result, damages);
    }
    return result.damaged() + result.unreadable() > 0 || !result.isComplete() ? 1 : 0;
  }

  private void print(VerifyResult result, List<Damage> damages) {
    PrintWriter out = out();
    if (json) {
      Map<String, Object> data = new LinkedHashMap<>();
      data.put("good_blocks", result.blocks());
      data.put("read_bytes", result.bytes());
      data.put("unverified_blocks", result.unverified());
      data.put("damaged_blocks", result.damaged());
      data.put("unreadable_files", result.unreadable());
      data.put("damages", damages.stream().map(StoreVerifyCommand::data).toList());
      Json.print(out, data);
      return;
    }
    for (Damage damage : damages) {
      out.println(
          (damage.isDamaged() ? "damaged: " : "unreadable: ")
              + damage.path()
              + ": "
              + damage.reason()
              + (damage.isMoved() ? " (moved aside)" : ""));
    }
    out.println(
        String.format(
            "%s blocks are good (%s read), %s damaged, %s unreadable, %s without checksums",
            result.blocks(),
            ByteText.of(result.bytes()),
            result.damaged(),
            result.unreadable(),
            result.unverified()));
  }

  private static Map<String, Object> data(Damage damage) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("path", damage.path());
    data.put("reason", damage.reason());
    data.put("damaged", damage.isDamaged());
    data.put("moved", damage.isMoved());
    return data;
  }
}
