package ucm.bench.simulator;

/**
 * What became of a request.
 *
 * @param promptTokens tokens of its prompt
 * @param hbmTokens of them found on the device when it was first admitted
 * @param externalTokens of them found outside then
 * @param preemptions how often it lost its memory to others
 * @param ttftNanos from its arrival to its first token
 * @param totalNanos from its arrival to its last
 */
public record Served(
    String id,
    int promptTokens,
    int hbmTokens,
    int externalTokens,
    int preemptions,
    long ttftNanos,
    long totalNanos) {}
