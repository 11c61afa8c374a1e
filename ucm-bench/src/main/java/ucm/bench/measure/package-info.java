/**
 * How to measure: warm-up, repetition, threads that stay awake, and the machine's own limits beside it
 * (copies, files). Steps go in, quantiles and ratios come out. It knows no store.
 */
package ucm.bench.measure;
