"""Starts moto with the integration of Step Functions with Step Functions put right.

moto's executor of state machines hands a task's parameters to boto3 as the definition has them, "StateMachineArn", where
boto3 knows "stateMachineArn": states:startExecution fails. And it expects of the answer what only AWS's own spelling
has. What is replaced is not moto's public interface: it is looked for first, and moto is not started where it is
missing or has other parameters.
"""

import importlib
import importlib.metadata
import inspect
import sys

MODULE = "moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_sfn"
EXPECTED = {
    "_normalise_parameters": ["self", "parameters", "boto_service_name", "service_action_name"],
    "_normalise_response": ["self", "response", "boto_service_name", "service_action_name"],
}


def service():
    """Returns the class of the integration, or ends the process."""
    wrong = []
    found = None
    try:
        found = importlib.import_module(MODULE).StateTaskServiceSfn
        for name, parameters in EXPECTED.items():
            has = list(inspect.signature(getattr(found, name)).parameters)
            if has != parameters:
                wrong.append(f"{MODULE}.StateTaskServiceSfn.{name} takes {has}, expected {parameters}")
    except (ImportError, AttributeError) as e:
        wrong.append(f"{MODULE}: {e}")
    if wrong:
        version = importlib.metadata.version("moto")
        sys.exit(f"moto {version} is not what pkg/emulators/bridge/launch_moto.py was written for:\n  " + "\n  ".join(wrong))
    return found


def spelled(members, spell):
    for name in list(members):
        members[spell(name[0]) + name[1:]] = members.pop(name)


def main():
    integration = service()
    parameters_before = integration._normalise_parameters

    def parameters_as_boto3(self, parameters, boto_service_name=None, service_action_name=None):
        parameters_before(self, parameters, boto_service_name, service_action_name)
        spelled(parameters, str.lower)

    def response_as_aws(self, response, boto_service_name=None, service_action_name=None):
        spelled(response, str.upper)

    integration._normalise_parameters = parameters_as_boto3
    integration._normalise_response = response_as_aws
    from moto.server import main as serve
    return serve(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
