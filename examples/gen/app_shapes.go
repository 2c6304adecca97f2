package gen

import "fmt"

func oneQueue(a *app) {
	s := a.stack("OneQueue")
	switch a.version {
	case 1:
		s.queue("Queue", object{"VisibilityTimeout": 30})
	case 2: // updated in place
		s.queue("Queue", object{"VisibilityTimeout": 60})
	case 3: // replaced: a queue's name can't be changed
		s.queue("Queue", object{"VisibilityTimeout": 60, "QueueName": "gen-one-queue"})
	case 4: // renamed in the template: another resource to the engine
		s.queue("Inbox", object{"VisibilityTimeout": 60})
	}
}

// chainOf makes n parameters, each holding the value of the one before. In version 2 the middle one gets a
// name of its own, which replaces it; in version 3 the value at the head changes, and with it every value.
func chainOf(n int) func(*app) {
	return func(a *app) {
		s := a.stack(fmt.Sprintf("Chain%d", n))
		id := func(i int) string { return fmt.Sprintf("Link%02d", i) }
		head := "start"
		if a.since(3) {
			head = "changed"
		}
		s.parameterOf(id(1), head)
		for i := 2; i <= n; i++ {
			p := object{"Type": "String", "Value": join("/", att(id(i-1), "Value"), "to", ref(id(i-1)))}
			if i%2 == 0 {
				p["Value"] = sub(fmt.Sprintf("%d after ${%s}", i, id(i-1)))
			}
			if i == n/2 && a.since(2) {
				p["Name"] = fmt.Sprintf("/gen/chain-%d/middle", n)
			}
			s.add(id(i), "AWS::SSM::Parameter", p)
		}
		s.output("End", ref(id(n)))
	}
}

func diamond(a *app) {
	s := a.stack("Diamond")
	s.topic("Top", object{"DisplayName": "top"})
	s.parameterOf("Left", sub("left of ${Top}"))
	right := s.queue("Right", object{"Tags": tags("topic", att("Top", "TopicName"))})
	bottom := list{ref("Left"), att(right, "Arn")}
	if a.since(2) { // one more between top and bottom
		s.parameterOf("Middle", ref("Top"))
		bottom = append(bottom, ref("Middle"))
	}
	s.parameterOf("Bottom", join(" + ", bottom...))
	s.output("Bottom", att("Bottom", "Value"))
}

func lattice(a *app) {
	s := a.stack("Lattice")
	const rows, columns = 6, 5
	id := func(row, column int) string { return fmt.Sprintf("R%dC%d", row, column%columns) }
	for row := range rows {
		for column := range columns {
			if row == 0 {
				s.parameterOf(id(row, column), fmt.Sprintf("seed %d", column))
				continue
			}
			// Names, not values: a value made of two values would double in length with each row.
			s.parameterOf(id(row, column), join(" ", ref(id(row-1, column)), ref(id(row-1, column+1))))
		}
	}
}

func fanOut(a *app) {
	s := a.stack("FanOut")
	s.topic("News", nil)
	first, last := 1, 79
	if a.since(2) {
		first, last = 11, 84
	}
	for i := first; i <= last; i++ {
		s.parameterOf(fmt.Sprintf("Reader%02d", i), sub(fmt.Sprintf("reader %d of ${News.TopicName}", i)))
	}
}

func fanIn(a *app) {
	s := a.stack("FanIn")
	var items list
	for i := range 40 {
		id := s.parameterOf(fmt.Sprintf("Part%02d", i), fmt.Sprint(i))
		items = append(items, att(id, "Value"))
	}
	s.parameterOf("Sum", join("+", items...))
	s.output("Sum", att("Sum", "Value"))
}

func islands(a *app) {
	s := a.stack("Islands")
	for i := range 100 {
		id := fmt.Sprintf("Island%02d", i)
		switch i % 4 {
		case 0:
			s.queue(id, object{"MessageRetentionPeriod": 60 + i})
		case 1:
			s.topic(id, object{"DisplayName": id})
		case 2:
			s.parameterOf(id, id)
		case 3:
			s.logGroup(id, 1)
		}
	}
}
