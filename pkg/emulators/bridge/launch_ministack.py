"""Starts MiniStack with its executor of custom runtimes (Go binaries) replaced by the bridge.

The bridge's address is in SLIPWAY_BRIDGE; without it MiniStack's own executor stays. What is replaced and what is
called here is not MiniStack's public interface: it is looked for first, and MiniStack is not started where a part
of it is missing or has other parameters.
"""

import hashlib
import importlib
import importlib.metadata
import inspect
import json
import os
import sys
import urllib.error
import urllib.request

# module, function, parameters: what is used here, and what replaces MiniStack's own must take.
EXPECTED = [
    ("ministack.services.lambda_svc", "_execute_function_provided_warm", ["func", "event", "request_id"]),
    ("ministack.services.lambda_svc", "_execute_function_provided", ["func", "event", "request_id"]),
    ("ministack.services.lambda_svc", "_runtime_env_vars", ["config"]),
    ("ministack.services.lambda_svc", "_throttle_response", ["reason_code", "msg", "retry_after"]),
    ("ministack.core.lambda_runtime", "execution_credentials", ["config"]),
    ("ministack.app", "main", []),
]

# The longest that Lambda lets a function run, and time for a process to start, in seconds.
PATIENCE = 900 + 60


def check():
    """Ends the process where MiniStack is not as expected."""
    wrong = []
    for module, name, parameters in EXPECTED:
        try:
            found = getattr(importlib.import_module(module), name)
            has = list(inspect.signature(found).parameters)
            if has != parameters:
                wrong.append(f"{module}.{name} takes {has}, expected {parameters}")
        except (ImportError, AttributeError) as e:
            wrong.append(f"{module}.{name}: {e}")
    delay = getattr(importlib.import_module("ministack.services.lambda_svc"), "_LAMBDA_STATE_TRANSITION_DELAY", None)
    if not isinstance(delay, (int, float)):
        wrong.append("ministack.services.lambda_svc._LAMBDA_STATE_TRANSITION_DELAY is no number")
    if wrong:
        version = importlib.metadata.version("ministack")
        sys.exit(f"ministack {version} is not what pkg/emulators/bridge/launch_ministack.py was written for:\n  " + "\n  ".join(wrong))


def executor(bridge, services):
    """Returns the function that runs a function's code in the bridge."""
    from ministack.core.lambda_runtime import execution_credentials

    def post(method, path, body):
        request = urllib.request.Request(bridge + path, data=body, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def execute(func, event, request_id):
        config = func.get("config") or func
        code = func.get("code_zip")
        if not code:
            return failure("Runtime.InvalidEntrypoint", "the function has no code")
        order = json.dumps({
            "function": {
                "name": config.get("FunctionName", ""),
                "arn": config.get("FunctionArn", ""),
                "version": config.get("Version") or "$LATEST",
                "handler": config.get("Handler") or "",
                "memory": int(config.get("MemorySize") or 128),
                "timeout": int(config.get("Timeout") or 3),
                "environment": {**execution_credentials(config), **services._runtime_env_vars(config)},
                "code": hashlib.sha256(code).hexdigest(),
            },
            "requestId": request_id,
            "payload": event,
        }).encode()
        try:
            try:
                answer = post("POST", "/bridge/invoke", order)
            except urllib.error.HTTPError as e:
                if e.code != 428:
                    raise
                post("PUT", "/bridge/code", code)
                answer = post("POST", "/bridge/invoke", order)
        except urllib.error.HTTPError as e:
            if e.code == 429:
                return services._throttle_response(reason_code="ConcurrentInvocationLimitExceeded", msg="Rate Exceeded.")
            return failure("Runtime.Unknown", f"the bridge answers {e.code}")
        except OSError as e:
            return failure("Runtime.Unknown", f"the bridge does not answer: {e}")
        result = {"log": answer.get("log", "")}
        try:
            result["body"] = json.loads(answer["payload"])
        except ValueError:
            result["body"], result["raw_payload"] = answer["payload"], True
        if answer.get("functionError"):
            result["error"], result["function_error"] = True, answer["functionError"]
        return result

    return execute


def failure(kind, message):
    return {"body": {"errorType": kind, "errorMessage": message}, "error": True}


def main():
    check()
    services = importlib.import_module("ministack.services.lambda_svc")
    # It keeps every new and every changed function pending for half a second; the suites make hundreds.
    services._LAMBDA_STATE_TRANSITION_DELAY = 0.05
    bridge = os.environ.get("SLIPWAY_BRIDGE")
    if bridge:
        run = executor(bridge.rstrip("/"), services)
        services._execute_function_provided_warm = run
        services._execute_function_provided = run
    from ministack.app import main as serve
    return serve()


if __name__ == "__main__":
    sys.exit(main())
