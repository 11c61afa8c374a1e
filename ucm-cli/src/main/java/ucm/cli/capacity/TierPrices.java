package ucm.cli.capacity;

/**
 * Prices, all in one currency.
 *
 * @param gpuHour of one GPU for an hour
 * @param dramGbMonth of 10^9 bytes of DRAM for a month
 * @param ssdGbMonth of 10^9 bytes of storage for a month
 */
record TierPrices(double gpuHour, double dramGbMonth, double ssdGbMonth) {}
