"""Base of the step machine: variables, conditions and loops. `machine.py` adds tests."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping

from etude.script import arguments
from etude.script.directive_words import (
    ArgumentError,
    ExpansionError,
    Template,
    UndefinedVariable,
    compile_text,
)
from etude.script.forloop import parse_for
from etude.script.program import Instruction, Op, Program, ScriptError
from etude.script.source import error_at
from etude.script.state import Loop, State
from etude.script.world import World
from etude.stats.expression import ExpressionError, compile_expression


class Flow:
    """Runs `program` from `state`."""

    def __init__(self, program: Program, state: State, world: World) -> None:
        self.program = program
        self.state = state
        self.world = world
        self.done = False
        self._unwinding = False
        self._do = [getattr(self, f"_{i.op.lower()}") for i in program.instructions]
        self._texts: list[Template | None] = [None] * len(program.instructions)
        self._here()

    def run(self) -> None:
        """Step until the script is done.

        Raises:
            ScriptError: an invalid instruction; CommandFailed: FASTFAIL, or a test was given up.
        """
        while not self.done:
            self.step()

    def step(self) -> None:
        """Run one instruction.

        Raises:
            Same as `run`.
        """
        state = self.state
        at = state.counter
        if at >= len(self._do):
            self._end()
            return
        if self.world.stopped and not self._unwinding:
            self._unwind()
            return
        instruction = self.program.instructions[at]
        state.counter = at + 1
        try:
            template = self._texts[at]
            if template is None:
                template = self._texts[at] = compile_text(instruction.text)
            text = template.expand(self._variables, self._environment)
            self._do[at](instruction, text)
        except (ExpansionError, ArgumentError, ExpressionError) as error:
            state.counter = at
            raise self._wrong(instruction, error) from None

    def _wrong(self, instruction: Instruction, error: Exception) -> ScriptError:
        """The error at its place. A column in expanded text does not apply to the line."""
        text = instruction.text
        known = isinstance(error, ExpansionError) or compile_text(text).is_static
        column = getattr(error, "column", 0) if known and not isinstance(error, ExpressionError) else 0
        message = str(error)
        if not known:
            replaced = compile_text(text).expand(self._variables, self._environment)
            message += f" (after replacement: {replaced if len(replaced) <= 1000 else replaced[:1000] + '…'})"
        return error_at(self.program.lines, instruction.file, instruction.line, message, text, column)

    def _here(self) -> None:
        scope = self.state.here
        self._scope = scope
        self._variables: Mapping[str, str] = scope.variables
        self._environment: Mapping[str, str] = ChainMap(scope.environment, self.world.environment)  # type: ignore[arg-type]

    # --- variables and output -----------------------------------------------------------------------

    def _echo(self, _: Instruction, text: str) -> None:
        self.world.echo(text)

    def _var(self, _: Instruction, text: str) -> None:
        self._assign(*arguments.parse_assignment(text))

    def _varex(self, _: Instruction, text: str) -> None:
        name, expression = arguments.parse_assignment(text)
        self._assign(name, self._value(expression))

    def _env(self, _: Instruction, text: str) -> None:
        self._export(*arguments.parse_assignment(text))

    def _envex(self, _: Instruction, text: str) -> None:
        name, expression = arguments.parse_assignment(text)
        self._export(name, self._value(expression))

    def _eval(self, _: Instruction, text: str) -> None:
        self.world.echo(self._value(text))

    def _value(self, expression: str) -> str:
        value = compile_expression(expression).evaluate(self._variables)
        if isinstance(value, bool):
            return "1" if value else "0"
        return arguments.number_text(value) if isinstance(value, float) else str(value)

    def _assign(self, name: str, value: str) -> None:
        if name in self.state.fixed:
            return
        if name == "THREADS":
            self._scope.threads = arguments.parse_threads(value)
        self._scope.variables[name] = value

    def _export(self, name: str, value: str) -> None:
        if name not in self.state.fixed:
            self._assign(name, value)
            self._scope.environment[name] = value

    def _threads(self, _: Instruction, text: str) -> None:
        self._assign("THREADS", str(arguments.parse_threads(text)))

    # --- control flow -----------------------------------------------------------------------------

    def _if(self, instruction: Instruction, text: str) -> None:
        if not self._holds(text):
            self.state.counter = instruction.target

    _while = _if

    def _holds(self, text: str) -> bool:
        condition = arguments.parse_condition(text)
        if condition.name not in self._variables:
            raise UndefinedVariable(condition.name, "variable", 1)
        return arguments.is_true(condition, self._variables[condition.name])

    def _jump(self, instruction: Instruction, _: str) -> None:
        self.state.counter = instruction.target

    def _foreach(self, instruction: Instruction, text: str) -> None:
        name, _ = arguments.parse_foreach(text)
        self._begin_loop(instruction, name, text)

    def _for(self, instruction: Instruction, text: str) -> None:
        self._begin_loop(instruction, parse_for(text).name, text)

    def _begin_loop(self, instruction: Instruction, name: str, text: str) -> None:
        self.state.loops.append(Loop(self.state.counter - 1, name, text))
        self._advance(instruction)

    def _next(self, instruction: Instruction, _: str) -> None:
        start = self.program.instructions[instruction.target]
        if start.op is Op.WHILE:
            self.state.counter = instruction.target
        else:
            self._advance(start)

    def _advance(self, start: Instruction) -> None:
        loop = self.state.loops[-1]
        value = _next_value(start.op, loop)
        if value is None:
            self.state.loops.pop()
            self.state.counter = start.target
        else:
            loop.place += 1
            self._scope.variables[loop.name] = value
            self.state.counter = loop.start + 1

    def _end(self) -> None:
        self.done = True

    def _unwind(self) -> None:
        """Proceed to the end after a signal."""
        self.done = True


def _next_value(op: Op, loop: Loop) -> str | None:
    if op is Op.FOREACH:
        values = arguments.parse_foreach(loop.text)[1]
        return values[loop.place + 1] if loop.place + 1 < len(values) else None
    return parse_for(loop.text).value(loop.place + 1)
