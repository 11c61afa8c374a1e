/**
 * Traces of requests: formats, parsers, problems, readers and writers. Files go in, {@link
 * ucm.lite.trace.TraceRequest} come out, one by one. It keeps no trace in memory and counts no
 * hits.
 */
package ucm.lite.trace;
