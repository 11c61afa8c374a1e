/**
 * The commands of {@code ucm bench}, one class each. Options go in, a report comes out. Measuring
 * itself is in the packages below.
 */
package ucm.bench;
