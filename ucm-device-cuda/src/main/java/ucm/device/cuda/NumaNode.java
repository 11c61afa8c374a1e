package ucm.device.cuda;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Which node of the host's memory a device of the PCI bus is attached to, as Linux says in {@code
 * /sys/bus/pci/devices/<id>/numa_node}.
 */
final class NumaNode {

  private static final int UNKNOWN = -1;

  private NumaNode() {}

  /** The node of a device; -1 where it is unknown. */
  static int of(String busId) {
    return of(Path.of("/sys/bus/pci/devices"), busId);
  }

  /**
   * @param devices the folder of the devices
   */
  static int of(Path devices, String busId) {
    if (busId.isEmpty()) {
      return UNKNOWN;
    }
    try {
      // The driver writes letters large, the kernel small.
      Path file = devices.resolve(busId.toLowerCase(Locale.ROOT)).resolve("numa_node");
      return Math.max(Integer.parseInt(Files.readString(file).strip()), UNKNOWN);
    } catch (IOException | InvalidPathException | NumberFormatException e) {
      return UNKNOWN;
    }
  }
}
