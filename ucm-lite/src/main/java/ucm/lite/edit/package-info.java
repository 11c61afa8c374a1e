/**
 * What makes or changes traces: generation, anonymization, merging. Requests or options go in,
 * requests come out. It reads no file.
 */
package ucm.lite.edit;
