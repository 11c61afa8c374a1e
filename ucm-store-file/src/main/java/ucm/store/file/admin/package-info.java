/**
 * The administration of directories: summaries, lists, verification, collection, adoption. A
 * directory goes in and records come out, without an open store. It knows no engine.
 */
package ucm.store.file.admin;
