/**
 * How to measure: warm-up, repetition, pinned threads, and the machine's own limits beside it
 * (copies, files, fio). Steps go in, quantiles and ratios come out. It knows no store.
 */
package ucm.bench.measure;
