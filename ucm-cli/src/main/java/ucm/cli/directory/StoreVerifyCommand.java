package ucm.cli.directory;

import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.VerifyPlan;
import ucm.api.admin.StoreDirectories.VerifyResult;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;

/** {@code ucm store verify}: whether the bytes of blocks are those that were written. */
@Command(
    name = "verify",
    description =
        "Reads every block and compares its checksums; exit code 1 when one is damaged or cannot be"
            + " read. It does not count as use. Without --quarantine nothing is changed.")
final class StoreVerifyCommand extends ReadCommand {

  private static final Columns<Damage> DAMAGES = damageColumns().data("moved", Damage::isMoved);

  @Option(
      names = "--quarantine",
      description = "move damaged files out of the way, as engines do when they find them")
  private boolean quarantine;

  @Override
  public Integer call() {
    StoreDirectories directories = open(Map.of());
    VerifyPlan plan = new VerifyPlan(threads, maxBytesPerSecond(), quarantine);
    VerifyResult result = onBytes(work -> directories.verify(plan, work, damages::add));
    printWhole(() -> data(result), () -> show(result));
    return result.damaged() + result.unreadable() > 0 || !result.isComplete() ? 1 : 0;
  }

  private void show(VerifyResult result) {
    for (Damage damage : damages) {
      String what = damage.isDamaged() ? "damaged: " : "unreadable: ";
      String moved = damage.isMoved() ? " (moved aside)" : "";
      say(what + damage.path() + ": " + damage.reason() + moved);
    }
    say(
        "%s blocks are good (%s read), %s damaged, %s unreadable, %s without checksums"
            .formatted(
                result.blocks(),
                Figures.bytes(result.bytes()),
                result.damaged(),
                result.unreadable(),
                result.unverified()));
  }

  private Fields data(VerifyResult result) {
    return new Fields()
        .with("good_blocks", result.blocks())
        .with("read_bytes", result.bytes())
        .with("unverified_blocks", result.unverified())
        .with("damaged_blocks", result.damaged())
        .with("unreadable_files", result.unreadable())
        .with("damages", DAMAGES.data(damages));
  }
}
