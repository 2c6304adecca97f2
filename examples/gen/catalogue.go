package gen

// catalogue lists the assemblies. Names are unique, and so are the physical names their resources ask for,
// so that all of them can be deployed into one account.
func catalogue() []entry {
	return []entry{
		// Shapes of graphs (app_shapes.go).
		{"one-queue", "the smallest stack; versions change, replace and rename the queue", 4, oneQueue},
		{"chain-10", "a chain of ten; version 2 replaces its middle, version 3 changes the value at its head", 3, chainOf(10)},
		{"chain-60", "a long chain", 1, chainOf(60)},
		{"diamond", "one above two above one", 2, diamond},
		{"lattice", "six rows of five, each resource using two of the row before", 1, lattice},
		{"fan-out-80", "one topic and 79 subscribers; version 2 takes ten away and adds five", 2, fanOut},
		{"fan-in-40", "forty parameters in one value", 1, fanIn},
		{"islands-100", "a hundred resources without a reference", 1, islands},
		{"services-50", "fifty resources of small services", 1, func(a *app) { services(a.stack("Services50"), 50) }},
		{"services-200", "two hundred resources of small services", 1, func(a *app) { services(a.stack("Services200"), 200) }},

		// Intrinsic functions and template features (app_functions.go, app_features.go).
		{"join-split-select", "lists and texts taken apart and put together", 1, joinSplitSelect},
		{"substitute", "Fn::Sub in all of its forms", 2, substitute},
		{"pseudo-parameters", "every pseudo parameter", 1, pseudoParameters},
		{"nested-attributes", "attributes with dots in their names", 1, nestedAttributes},
		{"conditions", "every condition function; version 2 turns the conditions around", 2, conditions},
		{"no-value", "properties, list items and arguments that are left out", 1, withNoValue},
		{"mappings", "values looked up by region and by stage", 2, mappings},
		{"parameters", "a parameter of every type; version 2 changes defaults", 2, parameters},
		{"base64-cidr", "subnets counted out by Fn::Cidr, user data in Base64", 1, base64Cidr},
		{"depends-on", "an order that no reference gives", 1, explicitOrder},
		{"deletion-policies", "policies that all delete; version 2 removes the resources", 2, deletionPolicies},
		{"retained", "policies that leave resources behind", 1, retained},
		{"tags", "tags of stack and resource; version 2 changes them", 2, tagged},
		{"unicode", "text from many scripts", 2, unicode},
		{"deep-properties", "properties nested many levels deep; version 2 changes one at the bottom", 2, deepProperties},
		{"outputs", "outputs of every kind; version 2 changes only them", 2, outputs},
		{"fixed-names", "resources with names of their own; version 2 gives new ones", 2, fixedNames},

		// Services (app_services.go).
		{"custom-resource", "a custom resource with the role and policy of its handler; version 2 changes its properties", 2, customResource},
		{"indirect-types", "types that Cloud Control can't provision", 1, indirectTypes},
		{"http-api", "an HTTP API over a function from a directory asset; version 2 has new code and another route", 2, httpAPI},
		{"rest-api", "a REST API with nested paths", 1, restAPI},
		{"network", "a network over two zones with a NAT gateway", 1, network},
		{"file-assets", "file and directory assets, one used twice", 1, fileAssets},
		{"encrypted", "one key and everything it encrypts", 1, encrypted},
		{"workflow", "events that start a state machine", 2, workflow},
		{"sign-in", "a user pool and its clients", 1, signIn},
		{"containers", "a cluster with a task and its logs", 1, containers},

		// Several stacks (app_stacks.go).
		{"two-stacks", "an export and its import; version 2 exports more", 2, twoStacks},
		{"stack-chain", "four stacks, each importing from the one before", 1, stackChain},
		{"stack-diamond", "a base that two stacks use, and one above both", 1, stackDiamond},
		{"stages", "one stack in two nested assemblies", 1, stages},
		{"regions", "stacks of one name in two regions", 1, regions},
	}
}
