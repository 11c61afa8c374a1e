/**
 * A store of files: submission of tasks, flush, close, and the components of an open store.
 * Transfers come in through {@link ucm.api.Store}, and files come out through the packages below.
 * It does not know which store extends it.
 */
package ucm.store.file;
