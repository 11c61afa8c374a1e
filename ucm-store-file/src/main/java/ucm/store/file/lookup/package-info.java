/**
 * Answers to look-ups: from the index, else from the file system on threads of its own. Ids go
 * in, bits come out, within a deadline. It moves no bytes of blocks.
 */
package ucm.store.file.lookup;
