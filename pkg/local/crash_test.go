package local

// child runs the part of a test that needs a process of its own.
func child(string) int { return 2 }
