package ucm.device;

/**
 * A device, as its driver describes it.
 *
 * @param id its ordinal, from 0
 * @param name what its maker calls it
 * @param memoryBytes its memory
 * @param driver the driver, with what it supports
 * @param uuid names it in all processes, whichever ordinals they give: 32 hexadecimal digits
 */
public record DeviceInfo(int id, String name, long memoryBytes, String driver, String uuid) {}
