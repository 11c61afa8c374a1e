package ucm.device;

/**
 * A device, as its driver describes it.
 *
 * @param id its ordinal, from 0
 * @param name what its maker calls it
 * @param memoryBytes its memory
 * @param driver the driver, with what it supports
 * @param uuid names it in all processes, whichever ordinals they give: 32 hexadecimal digits
 * @param numaNode the node of the host's memory that is nearest to it; -1 where that is unknown or the
 *     same for all memory
 */
public record DeviceInfo(
    int id, String name, long memoryBytes, String driver, String uuid, int numaNode) {}
