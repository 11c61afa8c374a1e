package ucm.lite.insight;

/**
 * How many gaps fall between two times, for bar charts. The bins of a list follow one another: each
 * begins where the one before ends, the first at 0.
 *
 * @param upToSeconds where the bin ends (inclusive, to within 1%)
 * @param sessionGaps gaps between consecutive requests of a session
 * @param blockGaps gaps between consecutive references to a block by different requests
 * @param lifetimes requests whose blocks were last used again this long after them
 */
public record TimeBin(double upToSeconds, long sessionGaps, long blockGaps, long lifetimes) {}
