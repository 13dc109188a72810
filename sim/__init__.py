"""The kernel, the seams, the record, replay and the command line of Agora."""
